import { BerthError } from '../../support/errors.ts';
import { errorCode, isConnectionError } from './connection-errors.ts';

const CHECK = 'check --database or BERTH_DATABASE_URL';
/**
 * PostgreSQL knows no such user, or not with this password, or not from here; or it asks for a password and
 * there is none.
 */
const AUTH_FAILURE = /^28|^SASL/;
const NO_DATABASE = '3D000';
const NOT_ALLOWED = '42501';

/** What PgBouncer says of settings that a session brings along. */
const POOLER = /unsupported startup parameter/i;

/** Sessions of a pooler are not PostgreSQL's own. */
export function poolerError(cause?: unknown): BerthError {
  return new BerthError(
    'unavailable',
    'this is a connection pooler such as PgBouncer, which drops the settings of a session and LISTEN; ' +
      'give --database or BERTH_DATABASE_URL the address of PostgreSQL itself',
    { cause },
  );
}

/** Where a database is looked for. */
export interface DatabaseAddress {
  host: string;
  port: number;
  database?: string | undefined;
}

/**
 * Why the first connection of a start failed, for whoever set the address. The user and the password stay out
 * of it.
 */
export function connectError(error: unknown, { host, port, database }: DatabaseAddress): BerthError {
  if (error instanceof Error && POOLER.test(error.message)) return poolerError(error);
  const reason = reasonOf(error);
  const at = `at ${host.includes(':') ? `[${host}]` : host}:${port}`;
  const say = (words: string): BerthError =>
    new BerthError('unavailable', `${words}${CHECK}`, { cause: error });
  if (AUTH_FAILURE.test(reason))
    return say(`the database ${at} refuses the user or the password (${reason}); `);
  if (reason === NO_DATABASE)
    return say(`there is no database ${JSON.stringify(database)} ${at}; make it, or `);
  if (reason === NOT_ALLOWED)
    return say(`the user may not use the database ${JSON.stringify(database)} ${at}; `);
  return say(
    `the database ${at} ${isConnectionError(error) ? 'does not answer' : 'cannot be used'} (${reason}); `,
  );
}

/** The code where there is one: PostgreSQL's messages name the user. */
function reasonOf(error: unknown): string {
  return errorCode(error) || (error instanceof Error ? error.message : String(error));
}
