import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { createMigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import type { MigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import { newJob } from '../../queue/job-submission.ts';
import * as transitions from '../../domain/job-transitions.ts';
import type { JobStore } from '../job-store.ts';
import { rows, sql } from '../sql.ts';

const NOW = 1_800_000_000_000;

describe('the order of takes on SQLite', () => {
  let migrated: MigratedDatabase;
  let store: JobStore;

  beforeEach(async () => {
    migrated = await createMigratedDatabase('sqlite');
    store = migrated.database.jobs();
  });
  afterEach(() => migrated.drop());

  const submit = (seqs: readonly number[], accountId = 'one'): Promise<unknown> =>
    Promise.all(
      seqs.map((seq) =>
        store.submit(
          newJob(
            { id: 'e', accountId, executionTimeout: 0, jobTtl: 86_400_000, retention: null, maxRetries: 1 },
            accountId,
            '{"input":1}',
            {},
            seq,
            NOW,
          ),
        ),
      ),
    );
  const take = async (count: number): Promise<number[]> =>
    (
      await store.take(
        'e',
        transitions.takeRequest(
          () => Array.from({ length: count }, (_, index) => ({ workerId: 'w', lease: `${index}` })),
          NOW + 5,
        ),
      )
    ).map(({ job }) => job.seq);
  const waiting = async (): Promise<number> => (await store.counts('e')).inQueue;

  test('the oldest go first, and a cancelled one is passed over', async () => {
    await submit(Array.from({ length: 120 }, (_, index) => index + 1));
    await submit([121]);
    assert.deepEqual(await take(3), [1, 2, 3]);
    await store.change('e', 60, (job) => transitions.cancel(job, NOW + 10));
    assert.equal(await waiting(), 117);
    assert.equal((await take(200)).length, 117);
    assert.equal(await waiting(), 0);
  });

  test('accounts share a take', async () => {
    await Promise.all([submit([1, 3, 5], 'one'), submit([2, 4], 'two')]);
    assert.deepEqual(await take(4), [1, 3, 2, 4]);
  });

  test('a number that comes later and is lower goes before', async () => {
    await submit([5, 6, 9, 10]);
    await submit([7, 11]);
    await submit([8]);
    assert.equal(await store.countAhead((await store.find('e', 9))!.job, 100), 4);
    assert.deepEqual(await take(3), [5, 6, 7]);
    assert.deepEqual(await take(2), [8, 9]);
    assert.deepEqual(await take(2), [10, 11]);
  });

  test('a job that goes back to the queue goes before those that came after it', async () => {
    await submit([1, 2, 3, 4]);
    assert.deepEqual(await take(2), [1, 2]);
    await store.change('e', 1, (job) => transitions.returnToQueue(job, { workerId: 'w' }, NOW + 10));
    assert.equal(await waiting(), 3);
    assert.deepEqual(await take(2), [1, 3]);
    assert.equal(await store.purge('e'), 1);
    assert.equal(await waiting(), 0);
  });

  test('reads the index of waiting jobs, and sorts nothing', async () => {
    for (const statement of [
      sql`explain query plan select seq from jobs indexed by jobs_waiting
        where endpoint_id = 'e' and low_priority = 0 and account_id = 'one' and status = 'IN_QUEUE'
        order by position, seq limit 10`,
    ]) {
      const plan = await migrated.database.read(() => rows<{ detail: string }>(statement));
      assert.deepEqual(
        plan.map(({ detail }) => detail),
        ['SEARCH jobs USING COVERING INDEX jobs_waiting (endpoint_id=? AND low_priority=? AND account_id=?)'],
      );
    }
  });
});
