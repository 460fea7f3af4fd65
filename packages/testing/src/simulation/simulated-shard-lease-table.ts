import type { Database } from '../../../cloud/src/store/database.ts';
import { LEASE_MS, LONGEST_LEASE_MS } from '../../../cloud/src/store/lease-store.ts';
import type { ShardLeaseStore } from '../../../cloud/src/store/shard-lease-store.ts';
import { execute, row, rows, sql } from '../../../cloud/src/store/sql.ts';
import type { Statement, Steps } from '../../../cloud/src/store/sql.ts';
import { shardLeaseName } from '../../../cloud/src/store/tables/worker-shards.table.ts';

type ShardLeaseCalls = Omit<ShardLeaseStore, 'fence' | 'reconnect' | 'close'>;

/** The statements of the leases of shards by the simulated clock of the database, as `simulated-lease-table.ts`. */
export function simulatedShardLeaseTable(
  database: Database,
  shards: number,
  now: () => number,
  connect: (calls: ShardLeaseCalls) => ShardLeaseCalls,
): ShardLeaseStore {
  const ended = (): Statement => sql`(expires_at <= ${now()} or expires_at > ${now() + LONGEST_LEASE_MS})`;
  const of = (server: string, shard: number, epoch: number): Statement =>
    sql`name = ${shardLeaseName(shard, shards)} and holder = ${server} and epoch = ${epoch}`;

  function* renewAll(...[server, hostId, held]: Parameters<ShardLeaseStore['renew']>): Steps<void> {
    yield* execute(
      sql`insert into worker_shard_members (server, host_id, expires_at) values (${server}, ${hostId}, ${now() + LEASE_MS})
        on conflict (server) do update set expires_at = excluded.expires_at`,
    );
    for (const { shard, epoch } of held)
      yield* execute(
        sql`update worker_shards set expires_at = ${now() + LEASE_MS} where ${of(server, shard, epoch)}`,
      );
  }

  return {
    ...connect({
      renew: (server, hostId, held) =>
        database.write(function* () {
          yield* renewAll(server, hostId, held);
          const leases = yield* rows<{ name: string; holder: string; epoch: number; expires_at: number }>(
            sql`select name, case when ${ended()} then '' else holder end as holder, epoch, expires_at from worker_shards`,
          );
          const members = yield* rows<{ server: string; host_id: string; leader: string }>(
            sql`select server, host_id, (select holder from leadership) as leader from worker_shard_members
              where not ${ended()}`,
          );
          const byName = new Map(leases.map((lease) => [lease.name, lease]));
          return {
            leases: Array.from({ length: shards }, (_, shard) => {
              const found = byName.get(shardLeaseName(shard, shards));
              return {
                shard,
                holder: found?.holder ?? '',
                epoch: Number(found?.epoch ?? 0),
                heldForMs: Math.max(0, Number(found?.expires_at ?? 0) - now()),
              };
            }),
            members: members.map(({ server: id, host_id, leader }) => ({
              server: id,
              hostId: host_id,
              isLeader: leader === id,
            })),
          };
        }),

      takeOver: (server, wanted) =>
        database.write(function* () {
          const taken: { shard: number; epoch: number }[] = [];
          for (const shard of wanted) {
            const found = yield* row<{ epoch: number }>(
              sql`update worker_shards set holder = ${server}, epoch = epoch + 1, expires_at = ${now() + LEASE_MS}
                where name = ${shardLeaseName(shard, shards)} and ${ended()} returning epoch`,
            );
            if (found !== undefined) taken.push({ shard, epoch: Number(found.epoch) });
          }
          return taken;
        }),

      release: async (server, held) => {
        await database.write(function* () {
          for (const { shard, epoch } of held)
            yield* execute(sql`update worker_shards set expires_at = 0 where ${of(server, shard, epoch)}`);
        });
      },

      leave: async (server) => {
        await database.write(() => execute(sql`delete from worker_shard_members where server = ${server}`));
      },
    }),
    fence: function* (server, { shard, epoch }) {
      const held = yield* row(
        database.dialect === 'postgres'
          ? sql`select 1 as held from worker_shards where ${of(server, shard, epoch)} for key share`
          : sql`select 1 as held from worker_shards where ${of(server, shard, epoch)}`,
      );
      return held !== undefined;
    },
    reconnect: () => undefined,
    close: async () => undefined,
  };
}
