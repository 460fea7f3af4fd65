import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createMigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import type { MigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import { startTcpProxy } from '../../../../testing/src/tcp-proxy.ts';
import type { TcpProxy } from '../../../../testing/src/tcp-proxy.ts';
import { waitFor } from '../../../../testing/src/wait-for.ts';
import { fencedDatabase } from '../fenced-database.ts';
import { execute, row, sql } from '../sql.ts';
import { LeaseElection } from '../lease-election.ts';
import { postgresLeaseTable } from './lease-table.ts';

describe('the lease of the leading server', () => {
  let migrated: MigratedDatabase;
  let cable: TcpProxy;
  before(async () => {
    migrated = await createMigratedDatabase('postgres');
    cable = await startTcpProxy(migrated.testDatabase.url);
  });
  after(async () => {
    await cable.disconnect();
    await migrated.drop();
  });

  const elect = (server: string, url: string): { election: LeaseElection; events: string[] } => {
    const events: string[] = [];
    const election = new LeaseElection({
      server,
      connect: (onDisconnected) => postgresLeaseTable(url, onDisconnected),
      onError: () => undefined,
      onCutOff: () => undefined,
      onResigned: () => void events.push('resigned'),
    });
    election.start(
      () => void events.push('lead'),
      () => void events.push('lost'),
    );
    return { election, events };
  };
  const write = (election: LeaseElection, value: string): Promise<number> =>
    fencedDatabase(migrated.database, election).write(() =>
      execute(
        sql`insert into settings (name, value) values ('by the leader', ${value})
          on conflict (name) do update set value = excluded.value`,
      ),
    );
  const written = async (): Promise<string | undefined> =>
    (
      await migrated.database.read(() =>
        row<{ value: string }>(sql`select value from settings where name = 'by the leader'`),
      )
    )?.value;

  test('a leader that is cut off is replaced, stops by itself, and changes nothing when it is back', async () => {
    const first = elect('first', cable.url);
    await waitFor('the first leads', () => first.election.isLeading());
    const second = elect('second', migrated.testDatabase.url);
    assert.equal(await write(first.election, 'first'), 1);
    await assert.rejects(write(second.election, 'second'), { code: 'unavailable' });

    cable.freeze();
    await waitFor('the first knows that its time is over', () => !first.election.isLeading());
    await waitFor('the second leads', () => second.election.isLeading());
    await assert.rejects(write(first.election, 'first again'), /another server is the leader/);
    assert.equal(await write(second.election, 'second'), 1);

    cable.thaw();
    await waitFor('the first has stopped', () => first.events.includes('lost'));
    assert.equal(first.election.isLeading(), false);
    assert.equal(await written(), 'second');
    assert.deepEqual([first.events, second.events], [['lead', 'lost'], ['lead']]);

    // Handed over, not waited for.
    await second.election.resign();
    first.election.wake();
    await waitFor('the first leads again', () => first.election.isLeading());
    assert.deepEqual(second.events, ['lead', 'resigned']);
    await first.election.close();
    await second.election.close();
  });

  test('a stalled transaction of the leader is ended before another server leads', async () => {
    const first = elect('still', cable.url);
    await waitFor('the first leads', () => first.election.isLeading());
    // Steps cannot wait, so the database does: for a lock that this test holds.
    const holding = migrated.database.write(function* () {
      yield sql`select pg_advisory_xact_lock(1)`;
      yield sql`select pg_sleep(3.5)`;
    });
    const late = fencedDatabase(migrated.database, first.election).write(function* () {
      yield sql`select pg_advisory_xact_lock(1)`;
      yield sql`update settings set value = 'late' where name = 'by the leader'`;
    });
    const second = elect('next', migrated.testDatabase.url);
    cable.freeze();
    await holding;
    await late;
    assert.equal(second.election.isLeading(), false);
    await waitFor('the second leads', () => second.election.isLeading());
    assert.equal(await written(), 'late');
    cable.thaw();
    await first.election.close();
    await second.election.close();
  });

  test('a lease that ends too late is free: the clock of the database was set back', async () => {
    await migrated.database.write(() =>
      execute(
        sql`update leadership set holder = 'dead', expires_at = ${Date.now() + 7_200_000} where name = 'leader'`,
      ),
    );
    const { election } = elect('after the step', migrated.testDatabase.url);
    await waitFor('somebody leads', () => election.isLeading());
    await election.close();
  });
});
