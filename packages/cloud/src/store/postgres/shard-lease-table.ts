import { LEASE_MS } from '../lease-store.ts';
import type { HeldShard, ShardLeaseStore } from '../shard-lease-store.ts';
import { row, sql } from '../sql.ts';
import { leaderLeaseName, shardLeaseName } from '../tables/worker-shards.table.ts';
import { leaseConnection, STANDSTILL_MS } from './lease-connection.ts';
import { ENDED, NOW } from './lease-table.ts';

/** `expires_at` of a lease that is held by nobody is passed, or impossible: see `lease-table.ts`. */
const HOLDER = `case when ${ENDED} then '' else holder end`;
const HELD_FOR = `case when ${ENDED} then 0 else expires_at - ${NOW} end`;

/** The leases of so many shards, over a connection of their own. */
export function postgresShardLeaseTable(
  url: string,
  shards: number,
  onDisconnected: (error: Error) => void,
): ShardLeaseStore {
  const connection = leaseConnection(url, onDisconnected);
  const names = Array.from({ length: shards }, (_, shard) => shardLeaseName(shard, shards));
  const nameOf = (shard: number): string => shardLeaseName(shard, shards);
  /** Two lists of one length, for unnest. */
  const lists = (held: readonly HeldShard[]): [string[], number[]] => [
    held.map(({ shard }) => nameOf(shard)),
    held.map(({ epoch }) => epoch),
  ];

  return {
    renew: async (server, hostId, held) => {
      const client = await connection.connected();
      await client.query(
        `insert into worker_shard_members (server, host_id, expires_at) values ($1, $2, ${NOW} + $3)
          on conflict (server) do update set expires_at = excluded.expires_at`,
        [server, hostId, LEASE_MS],
      );
      if (held.length > 0)
        await client.query(
          `update worker_shards set expires_at = ${NOW} + $2 from unnest($3::text[], $4::bigint[]) as held (lease, lease_epoch)
            where name = lease and holder = $1 and epoch = lease_epoch`,
          [server, LEASE_MS, ...lists(held)],
        );
      const leases = await client.query<{ name: string; holder: string; epoch: string; ms: string }>(
        `select name, ${HOLDER} as holder, epoch, ${HELD_FOR} as ms from worker_shards`,
      );
      const members = await client.query<{ server: string; host_id: string; leads: boolean }>(
        `select server, host_id, exists (select from leadership where name = $1 and holder = server
            and not ${ENDED.replaceAll('expires_at', 'leadership.expires_at')}) as leads
          from worker_shard_members where not ${ENDED}`,
        [leaderLeaseName(shards)],
      );
      const byName = new Map(leases.rows.map((lease) => [lease.name, lease]));
      return {
        leases: names.flatMap((name, shard) => {
          const lease = byName.get(name);
          if (lease === undefined) return [];
          const { holder, epoch, ms } = lease;
          return [{ shard, holder, epoch: Number(epoch), heldForMs: Number(ms) }];
        }),
        members: members.rows.map(({ server: id, host_id, leads }) => ({
          server: id,
          hostId: host_id,
          isLeader: leads,
        })),
      };
    },

    // Locked as for a deletion: that waits for transactions of the last holder, which `fence` has let in.
    takeOver: async (server, wanted) => {
      const answer = await (await connection.connected()).query<{ name: string; epoch: string }>(
        `with free as (select name from worker_shards where name = any($3::text[]) and ${ENDED} for update skip locked)
          update worker_shards set holder = $1, epoch = epoch + 1, expires_at = ${NOW} + $2
          where name in (select name from free) returning name, epoch`,
        [server, LEASE_MS, wanted.map(nameOf)],
      );
      return answer.rows.map(({ name, epoch }) => ({ shard: names.indexOf(name), epoch: Number(epoch) }));
    },

    release: async (server, held) => {
      await connection.current?.query(
        `update worker_shards set expires_at = 0 from unnest($2::text[], $3::bigint[]) as held (lease, lease_epoch)
          where name = lease and holder = $1 and epoch = lease_epoch`,
        [server, ...lists(held)],
      );
    },

    leave: async (server) => {
      await connection.current?.query('delete from worker_shard_members where server = $1', [server]);
    },

    fence: function* (server, { shard, epoch }) {
      const held = yield* row(
        sql`select set_config('idle_in_transaction_session_timeout', ${String(STANDSTILL_MS)}, true) from worker_shards
          where name = ${nameOf(shard)} and holder = ${server} and epoch = ${epoch} for key share`,
      );
      return held !== undefined;
    },

    reconnect: () => connection.reconnect(),
    close: () => connection.close(),
  };
}
