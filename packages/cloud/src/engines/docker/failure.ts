import { BerthError, type ErrorCode } from '../../support/errors.ts';

interface DaemonError extends Error {
  statusCode?: number;
  json?: { message?: string; cause?: string } | Buffer | null;
}

/** What the daemon says of a failure, without the library's words around it. */
export function wordsOf(error: unknown): string {
  const { json, message } = error as DaemonError;
  if (json !== null && json !== undefined && 'message' in json && json.message) return json.message.trim();
  return message.replace(/^\(HTTP code \d+\) [^-]*- /, '').trim();
}

export function statusOf(error: unknown): number | undefined {
  return (
    (error as DaemonError).statusCode ??
    (error instanceof BerthError ? statusOf(error.cause ?? {}) : undefined)
  );
}

export function isGone(error: unknown): boolean {
  return statusOf(error) === 404;
}

/** It is not in the state for that: a container that does not run cannot be signalled. */
export function isIdle(error: unknown): boolean {
  return (
    [304, 409].includes(statusOf(error) ?? 0) ||
    (statusOf(error) === 500 && /state improper/.test(wordsOf(error)))
  );
}

/** A request that is wrong in itself will never be right; everything else may be tried again. */
export function failureOf(error: unknown): BerthError {
  const status = statusOf(error);
  if (status === undefined)
    return new BerthError('unavailable', `Docker does not answer: ${wordsOf(error)}`, { cause: error });
  const code: ErrorCode =
    status >= 400 && status < 500 && status !== 409 && status !== 429 ? 'rule' : 'unavailable';
  return new BerthError(code, `Docker refused: ${wordsOf(error)}`, { cause: error });
}

/** Failures of a start that lie in what is to be started, in the words of the runtimes. */
const NEVER = [
  /executable file/i,
  /not found in \$PATH/i,
  /no such file or directory/i,
  /permission denied/i,
  /is a directory/i,
  /exec format error/i,
  /invalid mount/i,
  /mounts denied/i,
  /invalid reference format/i,
];

export function startFailureOf(error: unknown): BerthError {
  const failure = error instanceof BerthError ? error : failureOf(error);
  if (
    failure.code === 'unavailable' &&
    statusOf(error) !== undefined &&
    NEVER.some((words) => words.test(failure.message))
  )
    return new BerthError('rule', failure.message, { cause: error });
  return failure;
}
