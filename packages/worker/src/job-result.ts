import type { WorkerIdentity } from './worker-environment.ts';
import { errorReport, errorMessage } from './error-report.ts';

/** The result of a job as it is sent. */
export interface JobResult {
  /** JSON text with `output` or `error`, or both. */
  body: string;
  failed: boolean;
  /** The worker asks to be replaced. */
  requestsRefresh: boolean;
}

/** Options that apply to every result of a worker. */
export interface ResultOptions {
  identity: WorkerIdentity;
  refreshWorker: boolean;
}

/** Undefined counts as null. Throws for values that JSON cannot represent. */
export function toJson(value: unknown): string {
  const text = JSON.stringify(value) as string | undefined;
  if (text !== undefined) return text;
  if (value === undefined) return 'null';
  throw new TypeError(`a ${typeof value} has no form in JSON`);
}

/**
 * The result for a handler's return value. In an object, `error` makes the job fail and `refresh_worker` asks
 * for a new worker; both are removed, the rest is the output.
 */
export function toJobResult(value: unknown, terms: ResultOptions): JobResult {
  try {
    if (value instanceof Error) return failureResult(value, terms);
    if (!hasReservedKeys(value))
      return {
        body: withStopPod(`{"output":${toJson(value)}`, terms.refreshWorker),
        failed: false,
        requestsRefresh: terms.refreshWorker,
      };
    const { error, refresh_worker: refreshSnake, refreshWorker: refreshCamel, ...output } = value;
    const refresh = terms.refreshWorker || Boolean(refreshSnake) || Boolean(refreshCamel);
    const parts: string[] = [];
    if (Object.keys(output).length > 0) parts.push(`"output":${toJson(output)}`);
    if (Boolean(error))
      parts.push(`"error":${toJson(error instanceof Error ? errorReport(error, terms.identity) : error)}`);
    if (refresh) parts.push('"stopPod":true');
    return { body: `{${parts.join(',')}}`, failed: Boolean(error), requestsRefresh: refresh };
  } catch (error) {
    return failureResult(unserializableError('the output', error), terms);
  }
}

/** The result of a completed stream; `output` is JSON text. */
export function streamResult(output: string, { refreshWorker }: ResultOptions): JobResult {
  return {
    body: withStopPod(`{"output":${output}`, refreshWorker),
    failed: false,
    requestsRefresh: refreshWorker,
  };
}

/** The result of a stream that yielded an error. */
export function yieldedErrorResult(error: unknown, terms: ResultOptions): JobResult {
  return toJobResult({ error }, terms);
}

export function failureResult(thrown: unknown, { identity, refreshWorker }: ResultOptions): JobResult {
  return {
    body: withStopPod(`{"error":${JSON.stringify(errorReport(thrown, identity))}`, refreshWorker),
    failed: true,
    requestsRefresh: refreshWorker,
  };
}

export function unserializableError(what: string, cause: unknown): Error {
  const error = new TypeError(`${what} cannot be sent as JSON: ${errorMessage(cause)}`);
  error.name = 'UnsendableOutput';
  return error;
}

function withStopPod(open: string, refresh: boolean): string {
  return refresh ? `${open},"stopPod":true}` : `${open}}`;
}

function hasReservedKeys(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    ('error' in value || 'refresh_worker' in value || 'refreshWorker' in value)
  );
}
