import { BerthError } from '../../support/errors.ts';
import type { Database } from '../database.ts';
import { byDialect, execute, row, rows, sql } from '../sql.ts';
import type { Steps } from '../sql.ts';
import { forUpdate } from './owned-table.ts';

const now = byDialect({
  sqlite: `cast(unixepoch('subsec') * 1000 as integer)`,
  postgres: '(extract(epoch from clock_timestamp()) * 1000)::bigint',
});
/** A server that was silent for this long is gone, or finds when it wakes up that its leases are. */
const GONE_AFTER_MS = 10_000;
const LEADER = 'leader';

/**
 * The name of the lease of the leader says how many shards there are. Servers with another number therefore
 * find no lease to take, and neither do those that do not know shards.
 */
export function leaderLeaseName(shards: number): string {
  return shards === 1 ? LEADER : `${LEADER}, ${shards} shards`;
}

export function shardLeaseName(shard: number, shards: number): string {
  return `${shard + 1}/${shards}`;
}

function* readLeaderLease(): Steps<{ name: string } | undefined> {
  return yield* row<{ name: string }>(sql`select name from leadership`);
}

function shardsOf(name: string): number {
  return Number(/, (\d+) shards$/.exec(name)?.[1] ?? 1);
}

/** Rejects where servers with another number of shards have taken over this database meanwhile. */
export async function checkWorkerShards(database: Database, shards: number): Promise<void> {
  const found = numberIn(await database.read(readLeaderLease));
  if (found !== shards)
    throw new BerthError(
      'state',
      `workerShards is ${shards} here, and ${found} at the servers that were started since; set it alike and ` +
        'start this server again',
    );
}

function numberIn(found: { name: string } | undefined): number {
  return found === undefined ? 1 : shardsOf(found.name);
}

/** How many shards each server holds. */
export async function countShards(database: Database): Promise<ReadonlyMap<string, number>> {
  const found = await database.read(() =>
    rows<{ holder: string; held: number }>(
      sql`select holder, count(*) as held from worker_shards where expires_at > ${now} group by holder`,
    ),
  );
  return new Map(found.map(({ holder, held }) => [holder, Number(held)]));
}

/**
 * Gives the leases of the database the form for so many shards. Rejects while servers with another number run:
 * two of them would manage the same workers.
 */
export async function useWorkerShards(database: Database, shards: number): Promise<void> {
  const name = leaderLeaseName(shards);
  if ((await database.read(readLeaderLease))?.name === name) return;
  await database.write(function* () {
    // This waits for running writes of the leader; afterwards leaders and holders of shards are fenced out.
    const found = yield* row<{ name: string }>(sql`select name from leadership${forUpdate}`);
    if (found === undefined || found.name === name) return;
    const others = yield* rows<{ address: string }>(
      sql`select address from servers where seen_at > ${now} - ${GONE_AFTER_MS} order by address`,
    );
    if (others.length > 0)
      throw new BerthError(
        'unavailable',
        `workerShards is ${shards} here, and ${shardsOf(found.name)} at the servers of this database that run ` +
          `(${others.map(({ address }) => address).join(', ')}); set it alike (BERTH_WORKER_SHARDS), or stop all ` +
          `of them, wait ${GONE_AFTER_MS / 1000} s, and start them with the new number`,
      );
    yield* execute(sql`update leadership set name = ${name}, holder = '', epoch = epoch + 1, expires_at = 0`);
    yield* execute(sql`delete from worker_shards`);
    yield* execute(sql`delete from worker_shard_members`);
    if (shards > 1)
      for (let shard = 0; shard < shards; shard += 1)
        yield* execute(
          sql`insert into worker_shards (name, holder, epoch, expires_at)
            values (${shardLeaseName(shard, shards)}, '', 0, 0)`,
        );
  });
}
