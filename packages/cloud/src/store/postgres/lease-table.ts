import { createRequire } from 'node:module';
import type * as Pg from 'pg';
import { LEASE_MS, LONGEST_LEASE_MS } from '../lease-store.ts';
import type { LeaseStore } from '../lease-store.ts';
import { row, sql } from '../sql.ts';
import { SESSION_OPTIONS } from './session-options.ts';

const ANSWER_TIMEOUT_MS = 2_000;
/**
 * A transaction of the leader that stands still is ended by the database, so that it cannot keep others from
 * taking over.
 */
const STANDSTILL_MS = 1_800;
/** The lock that servers before the lease held while they led. */
const OLD_LOCK = `exists (select from pg_locks where locktype = 'advisory' and classid = 0 and objid = 8484002
  and granted and database = (select oid from pg_database where datname = current_database()))`;
const NOW = '(extract(epoch from clock_timestamp()) * 1000)::bigint';
const ENDED = `(expires_at <= ${NOW} or expires_at > ${NOW} + ${LONGEST_LEASE_MS})`;
const FREE = `name = 'leader' and ${ENDED} and not ${OLD_LOCK}`;

/** Over a connection of its own, so that a lease is renewed whatever else waits for the database. */
export function postgresLeaseTable(url: string, onDisconnected: (error: Error) => void): LeaseStore {
  const pg = createRequire(import.meta.url)('pg') as typeof Pg;
  let current: Pg.Client | undefined;

  async function connected(): Promise<Pg.Client> {
    if (current !== undefined) return current;
    const client = new pg.Client({
      connectionString: url,
      application_name: 'berth leadership',
      options: SESSION_OPTIONS,
      keepAlive: true,
      query_timeout: ANSWER_TIMEOUT_MS,
      connectionTimeoutMillis: ANSWER_TIMEOUT_MS,
    });
    current = client;
    client.on('error', (error) => {
      if (current === client) onDisconnected(error);
    });
    await client.connect();
    return client;
  }

  return {
    heldForMs: async () => {
      const answer = await (await connected()).query<{ ms: string }>(
        `select case when ${FREE} then 0 when ${ENDED} then ${LEASE_MS} else greatest(1, expires_at - ${NOW}) end as ms
          from leadership where name = 'leader'`,
      );
      return Number(answer.rows[0]?.ms ?? LEASE_MS);
    },

    // The row is locked as for a deletion: that waits for transactions of the last leader, which `fence` has
    // let in.
    takeOver: async (server) => {
      const answer = await (await connected()).query<{ epoch: string }>(
        `with free as (select name from leadership where ${FREE} for update skip locked)
          update leadership set holder = $1, epoch = epoch + 1, expires_at = ${NOW} + $2
          where name in (select name from free) returning epoch`,
        [server, LEASE_MS],
      );
      const epoch = answer.rows[0]?.epoch;
      return epoch === undefined ? undefined : Number(epoch);
    },

    renew: async (server, epoch) => {
      const { rowCount } = await (await connected()).query(
        `update leadership set expires_at = ${NOW} + $3 where name = 'leader' and holder = $1 and epoch = $2
          and not ${OLD_LOCK}`,
        [server, epoch, LEASE_MS],
      );
      return rowCount === 1;
    },

    release: async (server, epoch) => {
      await current?.query(
        `update leadership set expires_at = 0 where name = 'leader' and holder = $1 and epoch = $2`,
        [server, epoch],
      );
    },

    fence: function* (server, epoch) {
      const held = yield* row(
        sql`select set_config('idle_in_transaction_session_timeout', ${String(STANDSTILL_MS)}, true) from leadership
          where name = 'leader' and holder = ${server} and epoch = ${epoch} for key share`,
      );
      return held !== undefined;
    },

    reconnect: () => {
      const client = current;
      current = undefined;
      client?.end().catch(() => undefined);
    },

    close: async () => {
      await current?.end().catch(() => undefined);
    },
  };
}
