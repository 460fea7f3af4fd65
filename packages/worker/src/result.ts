import type { Identity } from './environment.ts';
import { failureText, messageOf } from './failure.ts';

/** What is sent as the result of a job. */
export interface Result {
  /** JSON text with `output` or `error`, or both. */
  body: string;
  failed: boolean;
  /** The worker asks to be replaced. */
  refresh: boolean;
}

/** Rules that hold for every result of a worker. */
export interface ResultTerms {
  identity: Identity;
  refreshWorker: boolean;
}

/** Undefined counts as null. Throws for what JSON has no form for. */
export function jsonOf(value: unknown): string {
  const text = JSON.stringify(value) as string | undefined;
  if (text !== undefined) return text;
  if (value === undefined) return 'null';
  throw new TypeError(`a ${typeof value} has no form in JSON`);
}

/**
 * The result that a handler returned. In an object, `error` makes the job fail and
 * `refresh_worker` asks for a new worker; both are taken out, the rest is the output.
 */
export function resultOf(value: unknown, terms: ResultTerms): Result {
  try {
    if (value instanceof Error) return failure(value, terms);
    if (!hasMarks(value))
      return {
        body: withStop(`{"output":${jsonOf(value)}`, terms.refreshWorker),
        failed: false,
        refresh: terms.refreshWorker,
      };
    const { error, refresh_worker: refreshSnake, refreshWorker: refreshCamel, ...output } = value;
    const refresh = terms.refreshWorker || Boolean(refreshSnake) || Boolean(refreshCamel);
    const parts: string[] = [];
    if (Object.keys(output).length > 0) parts.push(`"output":${jsonOf(output)}`);
    if (Boolean(error))
      parts.push(`"error":${jsonOf(error instanceof Error ? failureText(error, terms.identity) : error)}`);
    if (refresh) parts.push('"stopPod":true');
    return { body: `{${parts.join(',')}}`, failed: Boolean(error), refresh };
  } catch (error) {
    return failure(unsendable('the output', error), terms);
  }
}

/** The result of a stream that came to its end; `output` is JSON text. */
export function streamResult(output: string, { refreshWorker }: ResultTerms): Result {
  return { body: withStop(`{"output":${output}`, refreshWorker), failed: false, refresh: refreshWorker };
}

/** The result of a stream that yielded an error. */
export function yieldedError(error: unknown, terms: ResultTerms): Result {
  return resultOf({ error }, terms);
}

export function failure(thrown: unknown, { identity, refreshWorker }: ResultTerms): Result {
  return {
    body: withStop(`{"error":${JSON.stringify(failureText(thrown, identity))}`, refreshWorker),
    failed: true,
    refresh: refreshWorker,
  };
}

export function unsendable(what: string, cause: unknown): Error {
  const error = new TypeError(`${what} cannot be sent as JSON: ${messageOf(cause)}`);
  error.name = 'UnsendableOutput';
  return error;
}

function withStop(open: string, refresh: boolean): string {
  return refresh ? `${open},"stopPod":true}` : `${open}}`;
}

function hasMarks(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    ('error' in value || 'refresh_worker' in value || 'refreshWorker' in value)
  );
}
