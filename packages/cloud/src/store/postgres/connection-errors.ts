/** What PostgreSQL calls connections that failed, a server that shuts down, and one that has no room. */
const CODES = /^(08|57P|53)/;
/** A statement, a lock, a transaction or an idle session took longer than the server's settings allow. */
const TIMEOUTS = /^(57014|55P03|25P03|25P04)$/;
/** No room on the server's disk, or a server that only reads. */
const REFUSED_WRITES = /^(53100|25006)$/;
/**
 * What the system says of a connection, `ECONNREFUSED` or `EAI_AGAIN`; Node's own codes begin with `ERR_` and
 * are no such thing.
 */
const SYSTEM = /^E(?!RR_)[A-Z_]+$/;
/** What the driver says without a code. */
const WORDS = /Connection terminated|timeout exceeded|Query read timeout|not queryable/i;

export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/** The database cannot be reached now; the statement is not at fault. */
export function isConnectionError(error: unknown): boolean {
  const code = errorCode(error);
  return CODES.test(code) || SYSTEM.test(code) || WORDS.test(String(error));
}

/** The database gave up: the same may go well later. */
export function isTimeout(error: unknown): boolean {
  return TIMEOUTS.test(errorCode(error));
}

export function refusesWrites(error: unknown): boolean {
  return REFUSED_WRITES.test(errorCode(error));
}
