import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import pg from 'pg';
import { createMigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import type { MigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import type { JobStore } from '../job-store.ts';
import type { WorkerHeartbeat } from '../../domain/job-records.ts';
import { waitUntilPasses } from '../../../../testing/src/wait-for.ts';

const worker = (workerId: string, seenAt: number): WorkerHeartbeat => ({
  endpointId: 'e',
  workerId,
  seenAt,
  busy: 0,
  unhealthy: null,
  accelerated: false,
});

describe('workers that two servers note at the same time', () => {
  let postgres: MigratedDatabase;
  let store: JobStore;
  let other: pg.Client;
  before(async () => {
    postgres = await createMigratedDatabase('postgres');
    store = postgres.database.jobs();
  });
  after(() => postgres.drop());
  beforeEach(async () => {
    await store.saveHeartbeats([worker('a', 1), worker('b', 1)]);
    other = new pg.Client({ connectionString: postgres.testDatabase.url });
    await other.connect();
    await other.query('begin');
  });
  afterEach(() => other.end());

  /** As another server does, in a transaction that goes on. */
  const note = (workerId: string): Promise<unknown> =>
    other.query('update job_workers set seen_at = 2 where worker_id = $1', [workerId]);
  const isHeldUp = (): Promise<void> =>
    waitUntilPasses(async () => {
      const { rowCount } = await other.query(
        `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      assert.equal(rowCount, 1);
    });
  const seen = async (): Promise<[string, number][]> =>
    (await store.workers('e', 0)).map(({ workerId, seenAt }): [string, number] => [workerId, seenAt]).sort();

  test('are written in one order, so that neither waits for what waits for it', async () => {
    // Sooner than the database would end it for one of them.
    await other.query(`set local lock_timeout = '300ms'`);
    await note('a');
    const noted = store.saveHeartbeats([worker('b', 3), worker('a', 3)]);
    await isHeldUp();
    await note('b');
    await other.query('commit');
    await noted;
    assert.deepEqual(await seen(), [
      ['a', 3],
      ['b', 3],
    ]);
  });

  test('are written again after a deadlock with another order', async () => {
    await other.query(`set local deadlock_timeout = '1min'`);
    await note('b');
    const noted = store.saveHeartbeats([worker('a', 4), worker('b', 4)]);
    await isHeldUp();
    await note('a');
    await other.query('commit');
    await noted;
    assert.deepEqual(await seen(), [
      ['a', 4],
      ['b', 4],
    ]);
  });
});
