import type { Job, JobOutcome } from '../../domain/job-records.ts';
import type { BerthError, ErrorCode } from '../../support/errors.ts';
import { sendJson } from '../raw-http.ts';
import type { Response } from '../raw-http.ts';

/** What the clients of this interface read out of a failure. */
export interface OpenAiError {
  message: string;
  type: string;
  code: string;
}

/** What became of a job that brought no answer. */
export interface JobFailure {
  status: number;
  error: OpenAiError;
}

const STATUS: Record<ErrorCode, [status: number, type: string]> = {
  malformed: [400, 'invalid_request_error'],
  schema: [400, 'invalid_request_error'],
  rule: [400, 'invalid_request_error'],
  unauthenticated: [401, 'authentication_error'],
  forbidden: [403, 'permission_error'],
  'not-found': [404, 'not_found_error'],
  'no-route': [404, 'not_found_error'],
  method: [405, 'invalid_request_error'],
  taken: [400, 'invalid_request_error'],
  conflict: [409, 'invalid_request_error'],
  'in-use': [400, 'invalid_request_error'],
  state: [400, 'invalid_request_error'],
  capacity: [503, 'server_error'],
  'too-large': [413, 'invalid_request_error'],
  'media-type': [415, 'invalid_request_error'],
  rate: [429, 'rate_limit_error'],
  'quota-count': [403, 'permission_error'],
  'quota-bytes': [507, 'insufficient_quota'],
  'quota-spending': [402, 'insufficient_quota'],
  retired: [410, 'invalid_request_error'],
  unavailable: [503, 'server_error'],
  internal: [500, 'server_error'],
};

export function sendOpenAiError(response: Response, error: BerthError): void {
  const [status, type] = STATUS[error.code];
  const findings = error.details.length === 0 ? '' : `: ${error.details.join('; ')}`;
  sendJson(
    response,
    status,
    errorJson({ message: error.message + findings, type, code: error.code.replaceAll('-', '_') }),
    error.headers,
  );
}

export function errorJson(error: OpenAiError): string {
  return JSON.stringify({ error });
}

export const SERVER_STOPPING: JobFailure = {
  status: 503,
  error: { message: 'the server is stopping; try again', type: 'server_error', code: 'server_stops' },
};

/** Why a job that has ended, or is gone, has no answer; undefined where it has one. */
export function toJobFailure(found: JobOutcome | undefined): JobFailure | undefined {
  if (found === undefined)
    return {
      status: 404,
      error: {
        message: 'the job was removed before it was done',
        type: 'not_found_error',
        code: 'job_removed',
      },
    };
  const { job, payloads } = found;
  switch (job.status) {
    case 'COMPLETED':
      return undefined;
    case 'FAILED':
      return {
        status: 500,
        error: { message: errorMessage(payloads.error), type: 'server_error', code: 'job_failed' },
      };
    case 'TIMED_OUT':
      return {
        status: 504,
        error: { message: errorMessage(payloads.error), type: 'timeout_error', code: 'job_timed_out' },
      };
    case 'CANCELLED':
      return {
        status: 500,
        error: { message: 'the job was cancelled', type: 'server_error', code: 'job_cancelled' },
      };
    case 'IN_QUEUE':
    case 'IN_PROGRESS':
      return {
        status: 504,
        error: {
          message: `no answer in time: the job was still ${jobStateText(job)}`,
          type: 'timeout_error',
          code: 'timeout',
        },
      };
  }
}

function jobStateText({ status }: Job): string {
  return status === 'IN_QUEUE' ? 'waiting for a worker' : 'running';
}

/**
 * What went wrong, in words. A Python worker sends a text that holds JSON, with the words in `error_message`.
 */
export function errorMessage(errorJson: string | null): string {
  if (errorJson === null) return 'the job failed';
  const error: unknown = JSON.parse(errorJson);
  if (typeof error === 'string') {
    const inner = objectIn(error);
    return inner === undefined ? error : (messageOf(inner) ?? error);
  }
  return (typeof error === 'object' && error !== null ? messageOf(error) : undefined) ?? errorJson;
}

function objectIn(text: string): object | undefined {
  if (!text.startsWith('{')) return undefined;
  try {
    return JSON.parse(text) as object;
  } catch {
    // A text that only looks like JSON is a message like any other.
    return undefined;
  }
}

function messageOf(error: object): string | undefined {
  const found =
    ('error_message' in error ? error.error_message : undefined) ??
    ('message' in error ? error.message : undefined);
  return typeof found === 'string' && found !== '' ? found : undefined;
}
