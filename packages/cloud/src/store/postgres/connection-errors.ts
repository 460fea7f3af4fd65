/** What PostgreSQL calls connections that failed, a server that shuts down, and one that has no room. */
const CODES = /^(08|57P|53)/;
/** What the system says of a connection, `ECONNREFUSED` or `EAI_AGAIN`; Node's own codes begin with `ERR_` and are no such thing. */
const SYSTEM = /^E(?!RR_)[A-Z_]+$/;
/** What the driver says without a code. */
const WORDS = /Connection terminated|timeout exceeded|Query read timeout|not queryable/i;

export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/** The database is away, and not wrong: nobody is there, or not now. */
export function isConnectionError(error: unknown): boolean {
  const code = errorCode(error);
  return CODES.test(code) || SYSTEM.test(code) || WORDS.test(String(error));
}
