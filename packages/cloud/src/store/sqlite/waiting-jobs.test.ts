import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { createMigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import type { MigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import { newJob } from '../../queue/job-submission.ts';
import * as transitions from '../../domain/job-transitions.ts';
import type { JobStore } from '../job-store.ts';
import { rows, sql } from '../sql.ts';

const NOW = 1_800_000_000_000;

describe('places that jobs share on SQLite', () => {
  let place: MigratedDatabase;
  let store: JobStore;

  beforeEach(async () => {
    place = await createMigratedDatabase('sqlite');
    store = place.database.jobs();
  });
  afterEach(() => place.drop());

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
  const sizes = async (): Promise<number[]> =>
    (
      await place.database.read(() =>
        rows<{ size: number }>(sql`select size from job_waiting order by position, seq`),
      )
    ).map(({ size }) => size);

  test('whoever came together has one row, up to fifty; the rest of one has one row too', async () => {
    await submit(Array.from({ length: 120 }, (_, index) => index + 1));
    await submit([121]);
    assert.deepEqual(await sizes(), [50, 50, 20, 1]);
    assert.deepEqual(await take(3), [1, 2, 3]);
    assert.deepEqual(await sizes(), [47, 50, 20, 1]);
    await store.change('e', 60, (job) => transitions.cancel(job, NOW + 10));
    assert.deepEqual(await sizes(), [47, 49, 20, 1]);
    assert.equal((await take(200)).length, 117);
    assert.deepEqual(await sizes(), []);
  });

  test('accounts share none', async () => {
    await Promise.all([submit([1, 3, 5], 'one'), submit([2, 4], 'two')]);
    assert.deepEqual(await sizes(), [3, 2]);
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

  test('the first of a place comes back while others wait in it', async () => {
    await submit([1, 2, 3, 4]);
    assert.deepEqual(await take(2), [1, 2]);
    await store.change('e', 1, (job) => transitions.returnToQueue(job, { workerId: 'w' }, NOW + 10));
    assert.deepEqual(await sizes(), [1, 2]);
    assert.deepEqual(await take(2), [1, 3]);
    assert.equal(await store.purge('e'), 1);
    assert.deepEqual(await sizes(), []);
  });
});
