import type { FastifyBaseLogger } from 'fastify';
import { BerthError } from '../support/errors.ts';
import type { ErrorCode } from '../support/errors.ts';

/** The errors of the web framework, as Berth's own. */
const FASTIFY_ERRORS: Record<string, [ErrorCode, string]> = {
  FST_ERR_CTP_BODY_TOO_LARGE: ['too-large', 'the body is larger than what is read here'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['media-type', 'send the body as application/json'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['malformed', 'the body is not as long as Content-Length says'],
  FST_ERR_CTP_EMPTY_JSON_BODY: ['malformed', 'the body is empty where JSON was announced'],
  FST_ERR_CTP_INVALID_JSON_BODY: ['malformed', 'the body is not valid JSON'],
  FST_ERR_BAD_URL: ['malformed', 'the URL path is not valid'],
  FST_ERR_MAX_PARAM_LENGTH: ['no-route', 'no such address'],
};

/**
 * Turns anything thrown into an error that the APIs can send. Anything unknown is a defect: it is logged in
 * full, and its details are not sent.
 */
export function toBerthError(error: unknown, log: FastifyBaseLogger, requestId: string): BerthError {
  if (error instanceof BerthError) {
    if (error.code === 'internal' || (error.code === 'unavailable' && !isRepeated(error.message)))
      log.error({ err: error }, error.message);
    return error;
  }
  const known =
    error instanceof Error && 'code' in error && typeof error.code === 'string'
      ? FASTIFY_ERRORS[error.code]
      : undefined;
  if (known !== undefined) return new BerthError(known[0], known[1]);
  if (isOutOfDescriptors(error)) {
    log.error({ err: error }, OUT_OF_DESCRIPTORS);
    return new BerthError('unavailable', OUT_OF_DESCRIPTORS, { cause: error });
  }
  if (isClientAbort(error)) return new BerthError('malformed', 'the request was aborted before its end');
  log.error({ err: error }, 'unexpected error');
  return new BerthError(
    'internal',
    `something went wrong inside Berth; its log has the details under request ${requestId}`,
  );
}

/** An error that every request gets, as while the disk is full, is logged at most this often. */
const REPEAT_INTERVAL_MS = 1_000;
const MAX_REMEMBERED = 100;
const loggedAt = new Map<string, number>();

function isRepeated(message: string): boolean {
  const now = performance.now();
  if (now - (loggedAt.get(message) ?? -Infinity) < REPEAT_INTERVAL_MS) return true;
  loggedAt.delete(message);
  loggedAt.set(message, now);
  const [oldest] = loggedAt.keys();
  if (loggedAt.size > MAX_REMEMBERED && oldest !== undefined) loggedAt.delete(oldest);
  return false;
}

/** Node throws this while a request is read whose client has disconnected. */
function isClientAbort(error: unknown): boolean {
  return (
    error instanceof Error && error.message === 'aborted' && 'code' in error && error.code === 'ECONNRESET'
  );
}

const OUT_OF_DESCRIPTORS =
  'this server has no free file descriptors: raise the limit of open files (ulimit -n, LimitNOFILE) or ' +
  'lower maxConnections';

/** The process, or the whole system, has as many files and connections open as it may. */
function isOutOfDescriptors(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'EMFILE' || code === 'ENFILE';
}
