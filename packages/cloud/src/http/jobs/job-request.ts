import { clamp } from '../../queue/job-submission.ts';
import type { JobOptions } from '../../queue/job-submission.ts';
import { hasCredentials, CREDENTIALS_NOT_ALLOWED } from '../../queue/webhooks/webhook-target.ts';
import { BerthError } from '../../support/errors.ts';
import {
  EXECUTION_TIMEOUT_MS,
  JOB_RETENTION_MS,
  JOB_TTL_MS,
  MAX_WEBHOOK_LENGTH,
  SYNC_WAIT_MS,
} from '../../domain/limits.ts';

/** What a request body may say beside its input. What is not known here travels on to the worker. */
interface Body {
  input?: unknown;
  webhook?: unknown;
  webhookV2?: unknown;
  policy?: unknown;
  /** Berth's own: how long the result is kept, in milliseconds. */
  retention?: unknown;
}

/** Reads what a request asks for. The text itself is kept as it came. */
export function parseJobRequest(text: string): JobOptions {
  const body = parseObject(text);
  if (body.input === undefined || body.input === null)
    throw invalid('the body needs "input": the value that the handler receives');
  const policy = optionalObject(body.policy, 'policy');
  const webhook = body.webhook ?? body.webhookV2;
  if (typeof webhook === 'string' && webhook.length > MAX_WEBHOOK_LENGTH)
    throw invalid(`webhook has at most ${MAX_WEBHOOK_LENGTH} characters`);
  if (webhook !== undefined && webhook !== null && (typeof webhook !== 'string' || !isWebAddress(webhook)))
    throw invalid('webhook must be an http or https address');
  if (typeof webhook === 'string' && hasCredentials(new URL(webhook)))
    throw invalid(`webhook ${CREDENTIALS_NOT_ALLOWED}`);
  const executionTimeout = optionalNumber(policy['executionTimeout'], 'policy.executionTimeout');
  const ttl = optionalNumber(policy['ttl'], 'policy.ttl');
  const retention = optionalNumber(body.retention ?? policy['retention'], 'retention');
  const lowPriority = policy['lowPriority'] ?? false;
  if (typeof lowPriority !== 'boolean') throw invalid('policy.lowPriority must be true or false');
  return {
    ...(executionTimeout !== undefined && {
      executionTimeout: clamp(executionTimeout, EXECUTION_TIMEOUT_MS),
    }),
    ...(ttl !== undefined && { ttl: clamp(ttl, JOB_TTL_MS) }),
    ...(retention !== undefined && {
      retention: clamp(retention, { minimum: 0, maximum: JOB_RETENTION_MS.longest }),
    }),
    ...(lowPriority && { lowPriority }),
    ...(typeof webhook === 'string' && { webhook }),
  };
}

/** A wait in milliseconds: out of range it is moved into it, anything but a number is a mistake. */
export function parseWait(
  query: URLSearchParams,
  fallback: number = SYNC_WAIT_MS.default,
  bounds: { minimum: number; maximum: number } = SYNC_WAIT_MS,
): number {
  const text = query.get('wait');
  if (text === null) return fallback;
  return clamp(parseMilliseconds(text, 'wait'), bounds);
}

/** However large: it is moved into its bounds. */
export function parseMilliseconds(text: string, name: string): number {
  if (!/^-?\d+(\.\d+)?$/.test(text))
    throw invalid(`${name} must be a number of milliseconds, got ${JSON.stringify(text.slice(0, 32))}`);
  return Math.round(Number(text));
}

function parseObject(text: string): Body {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalid(
      text === '' ? 'the body is empty: send a JSON object with "input"' : 'the body is not valid JSON',
    );
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalid('the body must be a JSON object with "input"');
  return value;
}

function optionalObject(value: unknown, name: string): Record<string, unknown> {
  if (value === undefined || value === null) return {};
  if (typeof value !== 'object' || Array.isArray(value)) throw invalid(`${name} must be an object`);
  return value as Record<string, unknown>;
}

function optionalNumber(value: unknown, name: string): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'number') throw invalid(`${name} must be a number of milliseconds`);
  return Math.round(value);
}

/** Control characters are none of an address, and PostgreSQL keeps no text with a NUL. */
function isWebAddress(text: string): boolean {
  return /^https?:\/\/\P{Cc}+$/iu.test(text) && URL.canParse(text);
}

function invalid(message: string): BerthError {
  return new BerthError('rule', message);
}
