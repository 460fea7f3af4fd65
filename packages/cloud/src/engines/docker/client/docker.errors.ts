import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { BerthError, type ErrorCode } from '../../../support/errors.ts';

const MAX_MESSAGE_LENGTH = 1000;

/** The daemon's answer to a request that failed. */
export class DockerApiError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Reads why the daemon refused: Docker and Podman answer with JSON, a proxy in front of them perhaps not. */
export async function readApiError(response: IncomingMessage): Promise<DockerApiError> {
  const { statusCode = 0, statusMessage = '' } = response;
  const answer = (await text(response).catch(() => '')).trim();
  let message = answer.slice(0, MAX_MESSAGE_LENGTH);
  try {
    message = (JSON.parse(answer) as { message?: string }).message ?? message;
  } catch {
    // It is plain text.
  }
  return new DockerApiError(statusCode, message.trim() || `HTTP ${statusCode} ${statusMessage}`.trim());
}

export function daemonMessage(error: unknown): string {
  // That no address of a host answers has a code only.
  const { message, code, name } = error as NodeJS.ErrnoException;
  return message.trim() || (code ?? name);
}

export function daemonStatus(error: unknown): number | undefined {
  if (error instanceof DockerApiError) return error.status;
  return error instanceof BerthError ? daemonStatus(error.cause) : undefined;
}

export function isNotFound(error: unknown): boolean {
  return daemonStatus(error) === 404;
}

/** The container is in the wrong state, such as a signal to one that does not run. */
export function isWrongState(error: unknown): boolean {
  return (
    [304, 409].includes(daemonStatus(error) ?? 0) ||
    (daemonStatus(error) === 500 && /state improper/.test(daemonMessage(error)))
  );
}

/** Client errors are permanent, except conflicts and rate limits; everything else may be retried. */
export function toDockerError(error: unknown): BerthError {
  const status = daemonStatus(error);
  if (status === undefined)
    return new BerthError('unavailable', `Docker does not answer: ${daemonMessage(error)}`, { cause: error });
  const code: ErrorCode =
    status >= 400 && status < 500 && status !== 409 && status !== 429 ? 'rule' : 'unavailable';
  return new BerthError(code, `Docker refused: ${daemonMessage(error)}`, { cause: error });
}

/** Messages of the runtimes for errors in the spec or the image, which a retry does not fix. */
const PERMANENT_START_ERRORS = [
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

export function toStartError(error: unknown): BerthError {
  const failure = error instanceof BerthError ? error : toDockerError(error);
  if (
    failure.code === 'unavailable' &&
    daemonStatus(error) !== undefined &&
    PERMANENT_START_ERRORS.some((pattern) => pattern.test(failure.message))
  )
    return new BerthError('rule', failure.message, { cause: error });
  return failure;
}
