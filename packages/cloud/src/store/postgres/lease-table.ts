import { LEASE_MS, LONGEST_LEASE_MS } from '../lease-store.ts';
import type { LeaseStore } from '../lease-store.ts';
import { row, sql } from '../sql.ts';
import { leaderLeaseName } from '../tables/worker-shards.table.ts';
import { leaseConnection, STANDSTILL_MS } from './lease-connection.ts';

/** The lock that servers before the lease held while they led. */
const OLD_LOCK = `exists (select from pg_locks where locktype = 'advisory' and classid = 0 and objid = 8484002
  and granted and database = (select oid from pg_database where datname = current_database()))`;
/** The clock of the database. */
export const NOW = '(extract(epoch from clock_timestamp()) * 1000)::bigint';
export const ENDED = `(expires_at <= ${NOW} or expires_at > ${NOW} + ${LONGEST_LEASE_MS})`;
const FREE = `${ENDED} and not ${OLD_LOCK}`;

/** `name` is that of the lease, which says into how many shards workers are divided (`worker-shards.table.ts`). */
export function postgresLeaseTable(
  url: string,
  onDisconnected: (error: Error) => void,
  name = leaderLeaseName(1),
): LeaseStore {
  const connection = leaseConnection(url, onDisconnected);
  const { connected } = connection;

  return {
    heldForMs: async () => {
      const answer = await (await connected()).query<{ ms: string }>(
        `select case when ${FREE} then 0 when ${ENDED} then ${LEASE_MS} else greatest(1, expires_at - ${NOW}) end as ms
          from leadership where name = $1`,
        [name],
      );
      return Number(answer.rows[0]?.ms ?? LEASE_MS);
    },

    // The row is locked as for a deletion: that waits for transactions of the last leader, which `fence` has
    // let in.
    takeOver: async (server) => {
      const answer = await (await connected()).query<{ epoch: string }>(
        `with free as (select name from leadership where name = $3 and ${FREE} for update skip locked)
          update leadership set holder = $1, epoch = epoch + 1, expires_at = ${NOW} + $2
          where name in (select name from free) returning epoch`,
        [server, LEASE_MS, name],
      );
      const epoch = answer.rows[0]?.epoch;
      return epoch === undefined ? undefined : Number(epoch);
    },

    renew: async (server, epoch) => {
      const { rowCount } = await (await connected()).query(
        `update leadership set expires_at = ${NOW} + $3 where name = $4 and holder = $1 and epoch = $2
          and not ${OLD_LOCK}`,
        [server, epoch, LEASE_MS, name],
      );
      return rowCount === 1;
    },

    release: async (server, epoch) => {
      await connection.current?.query(
        'update leadership set expires_at = 0 where name = $3 and holder = $1 and epoch = $2',
        [server, epoch, name],
      );
    },

    fence: function* (server, epoch) {
      const held = yield* row(
        sql`select set_config('idle_in_transaction_session_timeout', ${String(STANDSTILL_MS)}, true) from leadership
          where name = ${name} and holder = ${server} and epoch = ${epoch} for key share`,
      );
      return held !== undefined;
    },

    reconnect: () => connection.reconnect(),
    close: () => connection.close(),
  };
}
