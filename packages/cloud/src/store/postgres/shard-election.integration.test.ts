import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createMigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import type { MigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import { startTcpProxy } from '../../../../testing/src/tcp-proxy.ts';
import type { TcpProxy } from '../../../../testing/src/tcp-proxy.ts';
import { waitFor } from '../../../../testing/src/wait-for.ts';
import { fencedDatabase } from '../fenced-database.ts';
import { LeaseElection } from '../lease-election.ts';
import { ShardElection } from '../shard-election.ts';
import { execute, sql } from '../sql.ts';
import {
  checkWorkerShards,
  countShards,
  leaderLeaseName,
  useWorkerShards,
} from '../tables/worker-shards.table.ts';
import { postgresLeaseTable } from './lease-table.ts';
import { postgresShardLeaseTable } from './shard-lease-table.ts';

const SHARDS = 6;

describe('the leases of shards', () => {
  let migrated: MigratedDatabase;
  let cable: TcpProxy;
  before(async () => {
    migrated = await createMigratedDatabase('postgres');
    cable = await startTcpProxy(migrated.testDatabase.url);
    await useWorkerShards(migrated.database, SHARDS);
  });
  after(async () => {
    await cable.disconnect();
    await migrated.drop();
  });

  const elect = (
    server: string,
    url: string,
    isBusy = (_: number): boolean => false,
  ): { election: ShardElection; held: Set<number> } => {
    const held = new Set<number>();
    const election = new ShardElection({
      shards: SHARDS,
      server,
      connect: (onDisconnected) => postgresShardLeaseTable(url, SHARDS, onDisconnected),
      onError: () => undefined,
      onReleased: () => undefined,
    });
    election.start({
      hostId: server,
      onLead: (shard) => held.add(shard),
      onLost: (shard) => held.delete(shard),
      isBusy,
    });
    return { election, held };
  };
  const write = (election: ShardElection, shard: number): Promise<number> =>
    fencedDatabase(migrated.database, { fence: () => election.fence(shard) }).write(() =>
      execute(
        sql`insert into settings (name, value) values ('by the holder', ${shard})
          on conflict (name) do update set value = excluded.value`,
      ),
    );

  test('servers share them, take those of one that is cut off, and give back when it returns', async () => {
    const first = elect('first', cable.url);
    await waitFor('the first has all', () => first.held.size === SHARDS);
    const second = elect('second', migrated.testDatabase.url);
    await waitFor('each has half', () => first.held.size === 3 && second.held.size === 3);
    assert.equal(new Set([...first.held, ...second.held]).size, SHARDS);
    assert.deepEqual([...(await countShards(migrated.database))].toSorted(), [
      ['first', 3],
      ['second', 3],
    ]);
    const [own = -1] = first.held;
    assert.equal(await write(first.election, own), 1);
    await assert.rejects(write(second.election, own), /another server manages the workers/);

    cable.freeze();
    await waitFor('the second has all', () => second.held.size === SHARDS);
    assert.equal(first.election.isLeading(own), false);
    await assert.rejects(write(first.election, own), { code: 'unavailable' });
    assert.equal(await write(second.election, own), 1);

    cable.thaw();
    await waitFor('each has half again', () => first.held.size === 3 && second.held.size === 3);
    assert.equal(new Set([...first.held, ...second.held]).size, SHARDS);

    // Handed over, not waited for.
    await first.election.resign();
    second.election.wake();
    await waitFor('the second has all again', () => second.held.size === SHARDS);
    await first.election.close();
    await second.election.close();
  });

  test('a shard in which something starts is kept for the time being', async () => {
    let isBusy = true;
    const first = elect('busy', migrated.testDatabase.url, (shard) => isBusy && shard < 5);
    await waitFor('the first has all', () => first.held.size === SHARDS);
    const second = elect('waiting', migrated.testDatabase.url);
    await waitFor('one was given back', () => second.held.size === 1);
    assert.deepEqual([...second.held], [5]);
    isBusy = false;
    await waitFor('each has half', () => first.held.size === 3 && second.held.size === 3);
    await first.election.close();
    await second.election.close();
  });

  test('another number of shards is refused while servers run; then the leases of former ones are gone', async () => {
    const { database, testDatabase } = migrated;
    const seen = (age: number): Promise<number> =>
      database.write(() =>
        execute(
          sql`insert into servers (id, host_id, address, version, started_at, seen_at)
            values ('one', 'host', 'http://one', '1', 0, (extract(epoch from clock_timestamp()) * 1000)::bigint - ${age})
            on conflict (id) do update set seen_at = excluded.seen_at`,
        ),
      );
    const former = elect('former', testDatabase.url);
    await waitFor('it has all', () => former.held.size === SHARDS);
    await seen(0);
    await useWorkerShards(database, SHARDS);
    await assert.rejects(useWorkerShards(database, 1), {
      code: 'unavailable',
      message: /workerShards is 1 here, and 6 at the servers of this database that run \(http:\/\/one\)/,
    });
    await assert.rejects(useWorkerShards(database, 4), /workerShards is 4 here, and 6 at/);
    assert.equal(await write(former.election, 2), 1);

    await seen(11_000);
    await useWorkerShards(database, 1);
    await assert.rejects(write(former.election, 2), /another server manages the workers/);
    await assert.rejects(checkWorkerShards(database, SHARDS), { code: 'state' });
    await checkWorkerShards(database, 1);
    await former.election.close();

    const leads = (shards: number): Promise<boolean> => {
      const election = new LeaseElection({
        server: `leader of ${shards}`,
        connect: (onDisconnected) =>
          postgresLeaseTable(testDatabase.url, onDisconnected, leaderLeaseName(shards)),
        onError: () => undefined,
        onCutOff: () => undefined,
        onResigned: () => undefined,
      });
      const lead = Promise.withResolvers<boolean>();
      election.start(
        () => lead.resolve(true),
        () => undefined,
      );
      // One that finds no lease has looked by the time at which another one has it.
      void election.wake();
      return Promise.race([lead.promise, waitFor('the other leads', () => hasLed).then(() => false)]).finally(
        () => election.close(),
      );
    };
    let hasLed = false;
    const other = leads(SHARDS);
    assert.equal(await leads(1), true);
    hasLed = true;
    assert.equal(await other, false);
  });
});
