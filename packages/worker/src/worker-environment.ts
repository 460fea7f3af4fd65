import { randomUUID } from 'node:crypto';
import { WorkerUrls } from './http/worker-urls.ts';
import { isHeaderValue } from './http/header-value.ts';

type Variables = Readonly<Record<string, string | undefined>>;

/** The identity of this worker in error reports. */
export interface WorkerIdentity {
  workerId: string;
  hostname: string;
}

export interface WorkerEnvironment extends WorkerIdentity {
  apiKey: string;
  pingMs: number;
  urls: WorkerUrls;
}

const DEFAULT_PING_MS = 10_000;
const MIN_PING_MS = 100;
/** A timer of more than 2^31 milliseconds fires immediately. No platform waits this long for a ping. */
const MAX_PING_MS = 3_600_000;

export function readIdentity(variables: Variables): WorkerIdentity {
  return {
    workerId: variables['RUNPOD_POD_ID'] ?? randomUUID(),
    hostname: variables['RUNPOD_POD_HOSTNAME'] ?? 'unknown',
  };
}

/** The environment that the platform sets. The names are those of the public worker protocol. */
export function readEnvironment(variables: Variables): WorkerEnvironment {
  const identity = readIdentity(variables);
  const pingMs = Number(variables['RUNPOD_PING_INTERVAL'] ?? DEFAULT_PING_MS);
  return {
    ...identity,
    apiKey: apiKeyOf(variables),
    pingMs:
      Number.isFinite(pingMs) && pingMs > 0
        ? Math.min(MAX_PING_MS, Math.max(MIN_PING_MS, pingMs))
        : DEFAULT_PING_MS,
    urls: new WorkerUrls(
      {
        take: requiredUrl(variables, 'RUNPOD_WEBHOOK_GET_JOB'),
        done: requiredUrl(variables, 'RUNPOD_WEBHOOK_POST_OUTPUT'),
        stream: optionalUrl(variables, 'RUNPOD_WEBHOOK_POST_STREAM'),
        ping: optionalUrl(variables, 'RUNPOD_WEBHOOK_PING'),
      },
      identity.workerId,
    ),
  };
}

function apiKeyOf(variables: Variables): string {
  const value = variables['RUNPOD_AI_API_KEY'] ?? '';
  if (!isHeaderValue(value))
    throw new TypeError(
      'RUNPOD_AI_API_KEY has a character, perhaps a line break at its end, that cannot be sent in a header',
    );
  return value;
}

function optionalUrl(variables: Variables, name: string): string | undefined {
  return variables[name] === undefined || variables[name] === '' ? undefined : requiredUrl(variables, name);
}

function requiredUrl(variables: Variables, name: string): string {
  const value = variables[name];
  if (value === undefined)
    throw new TypeError(`${name} is not set; the platform sets it together with RUNPOD_WEBHOOK_GET_JOB`);
  if (!/^https?:$/.test(URL.parse(value)?.protocol ?? ''))
    throw new TypeError(`${name} is "${value}"; it has to be an http or https address`);
  return value;
}
