import { createRequire } from 'node:module';
import { setTimeout as delay } from 'node:timers/promises';
import type * as Pg from 'pg';
import { BerthError } from '../../support/errors.ts';
import { SESSION_OPTIONS } from './session-options.ts';

const TRY_EVERY_MS = 20;
const MAX_WAIT_MS = 10_000;
/** Keeps these locks apart from others in the same database. */
const LOCK_SPACE = 8484003;

export interface AdvisoryLocksOptions {
  url: string;
  /** How long a lock that another server holds is waited for. */
  maxWaitMs?: number;
}

/**
 * Locks by name that hold over all servers of a database. They belong to one connection, opened when it is
 * first needed: the pool would run out if each holder kept one of its own. A server that ends loses its locks
 * with the connection. Nobody waits inside PostgreSQL, since that would keep the connection from releasing
 * another lock.
 */
export class AdvisoryLocks {
  readonly #options: AdvisoryLocksOptions;
  #client: Promise<Pg.Client> | undefined;
  #isClosed = false;

  constructor(options: AdvisoryLocksOptions) {
    this.#options = options;
  }

  /** A server must not ask for a name that it holds: one connection may hold a lock twice. */
  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const waitsUntil = performance.now() + (this.#options.maxWaitMs ?? MAX_WAIT_MS);
    const client = await this.#connection();
    while (!(await ask(client, 'pg_try_advisory_lock', name))) {
      if (performance.now() > waitsUntil)
        throw new BerthError('unavailable', 'another server is changing this account; try again');
      await delay(TRY_EVERY_MS);
    }
    try {
      return await work();
    } finally {
      // A connection that broke has released it already.
      await ask(client, 'pg_advisory_unlock', name).catch(() => undefined);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const client = await this.#client?.catch(() => undefined);
    await client?.end().catch(() => undefined);
  }

  #connection(): Promise<Pg.Client> {
    if (this.#isClosed) throw new BerthError('unavailable', 'the server is stopping');
    this.#client ??= this.#connect().catch((error: unknown) => {
      this.#client = undefined;
      throw new BerthError('unavailable', 'the database does not answer', { cause: error });
    });
    return this.#client;
  }

  async #connect(): Promise<Pg.Client> {
    const pg = createRequire(import.meta.url)('pg') as typeof Pg;
    const client = new pg.Client({
      connectionString: this.#options.url,
      application_name: 'berth locks',
      options: SESSION_OPTIONS,
      keepAlive: true,
      connectionTimeoutMillis: MAX_WAIT_MS,
      query_timeout: MAX_WAIT_MS,
    });
    const forget = (): void => {
      this.#client = undefined;
    };
    client.on('error', forget);
    client.on('end', forget);
    await client.connect();
    return client;
  }
}

async function ask(
  client: Pg.Client,
  routine: 'pg_try_advisory_lock' | 'pg_advisory_unlock',
  name: string,
): Promise<boolean> {
  const { rows } = await client.query<{ done: boolean }>(
    `select ${routine}(${LOCK_SPACE}, hashtext($1)) as done`,
    [name],
  );
  return rows[0]?.done === true;
}
