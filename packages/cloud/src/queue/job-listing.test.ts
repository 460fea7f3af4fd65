import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DATABASES } from '../../../testing/src/test-database.ts';
import { createMigratedDatabase } from '../../../testing/src/migrated-database.ts';
import type { MigratedDatabase } from '../../../testing/src/migrated-database.ts';
import type { Job, JobFilter } from '../domain/job-records.ts';
import type { JobStore } from '../store/job-store.ts';
import { ManualClock } from '../support/clock.ts';
import { countWithinBytes, listJobs } from './job-listing.ts';
import { newJob } from './job-submission.ts';
import * as transitions from '../domain/job-transitions.ts';

const MEGABYTE = 1024 * 1024;
const HOUR = 3_600_000;

test('a page holds as many jobs as fit, and at least one', () => {
  const sized = (...sizes: number[]): { seq: number; bytes: number }[] =>
    sizes.map((bytes, seq) => ({ seq, bytes }));
  assert.equal(countWithinBytes(sized(3, 3, 3), 9), 3);
  assert.equal(countWithinBytes(sized(3, 3, 4), 9), 2);
  assert.equal(countWithinBytes(sized(10, 1), 9), 1);
  assert.equal(countWithinBytes(sized(10), 9), 1);
  assert.equal(countWithinBytes([], 9), 0);
});

for (const kind of DATABASES) {
  describe(`lists of jobs, on ${kind}`, () => {
    const clock = new ManualClock(Date.UTC(2026, 5, 1));
    let migrated: MigratedDatabase;
    let store: JobStore;
    let number = 0;

    before(async () => {
      migrated = await createMigratedDatabase(kind);
      store = migrated.database.jobs();
    });
    after(() => migrated.drop());

    const submit = async (endpointId: string, input = '1', retention = HOUR): Promise<Job> => {
      const endpoint = {
        id: endpointId,
        accountId: 'a',
        executionTimeout: 0,
        jobTtl: 24 * HOUR,
        retention,
        maxRetries: 1,
      };
      return (await store.submit(newJob(endpoint, 'a', `{"input":${input}}`, {}, ++number, clock.now()))).job;
    };
    const cancel = ({ endpointId, seq }: Job): Promise<unknown> =>
      store.change(endpointId, seq, (job) => transitions.cancel(job, clock.now()));
    const several = (count: number, make: () => Promise<Job>): Promise<Job[]> =>
      Promise.all(Array.from({ length: count }, make));
    /** The jobs that a list returns, and those that were loaded for it, page by page. */
    const listed = async (
      endpointId: string,
      filter: Partial<JobFilter> = {},
      between: () => Promise<unknown> = async () => undefined,
    ): Promise<{ seqs: number[]; loaded: number[][] }> => {
      const loaded: number[][] = [];
      const watched: JobStore = {
        ...store,
        findAll: async (id, seqs) => {
          loaded.push([...seqs]);
          await between();
          return store.findAll(id, seqs);
        },
      };
      const seqs: number[] = [];
      for await (const piece of listJobs({ store: watched, clock }, endpointId, {
        limit: 100,
        offset: 0,
        ...filter,
      }))
        seqs.push(...piece.map(({ job }) => job.seq));
      return { seqs, loaded };
    };
    const newestFirst = (jobs: Job[]): number[] =>
      jobs.map(({ seq }) => seq).sort((one, other) => other - one);

    test('only the returned jobs are loaded', async () => {
      const jobs = newestFirst(await several(10, () => submit('few')));
      assert.deepEqual(await listed('few'), { seqs: jobs, loaded: [jobs] });
      assert.deepEqual(await listed('few', { limit: 3, offset: 5 }), {
        seqs: jobs.slice(5, 8),
        loaded: [jobs.slice(5, 8)],
      });
      assert.deepEqual(await listed('few', { offset: 10 }), { seqs: [], loaded: [] });
      assert.deepEqual(await listed('few', { status: 'FAILED' }), { seqs: [], loaded: [] });
      assert.deepEqual(await listed('none'), { seqs: [], loaded: [] });
    });

    test('large jobs are loaded a few at a time', async () => {
      const half = JSON.stringify('x'.repeat(MEGABYTE / 2 - 100));
      const jobs = newestFirst([
        ...(await several(4, () => submit('large', half))),
        await submit('large', JSON.stringify('x'.repeat(2 * MEGABYTE))),
      ]);
      const { seqs, loaded } = await listed('large');
      assert.deepEqual(seqs, jobs);
      assert.deepEqual(loaded, [jobs.slice(0, 1), jobs.slice(1, 3), jobs.slice(3)]);
    });

    test('a job is found however many others come before it', async () => {
      const oldest = await submit('many');
      const others = await several(4_500, () => submit('many'));
      await cancel(oldest);
      assert.deepEqual(await listed('many', { status: 'CANCELLED' }), {
        seqs: [oldest.seq],
        loaded: [[oldest.seq]],
      });
      const all = newestFirst([oldest, ...others]);
      assert.deepEqual((await listed('many', { limit: 2, offset: 4_499 })).seqs, all.slice(4_499));
      assert.deepEqual(
        (await listed('many', { limit: 10, status: 'IN_QUEUE', offset: 4_495 })).seqs,
        all.slice(4_495, 4_500),
      );
    });

    test('expired jobs take no space in a page', async () => {
      const kept = await several(3, () => submit('over'));
      const over = await several(5, () => submit('over', '1', 1_000));
      for (const job of over) await cancel(job);
      assert.equal((await listed('over')).seqs.length, 8);
      clock.advance(2_000);
      assert.deepEqual((await listed('over', { limit: 2 })).seqs, newestFirst(kept).slice(0, 2));
      assert.deepEqual((await listed('over', { limit: 2, offset: 2 })).seqs, newestFirst(kept).slice(2));
    });

    test('a job that changes between query and load is shown as it is now, and the page is filled', async () => {
      const jobs = await several(4, () => submit('changing'));
      const [first = 0, second = 0, third = 0] = newestFirst(jobs);
      const newest = jobs.find(({ seq }) => seq === first) as Job;
      assert.deepEqual(
        (await listed('changing', { limit: 2, status: 'IN_QUEUE' }, () => cancel(newest))).seqs,
        [second, third],
      );
      assert.equal((await listed('changing')).seqs.length, 4);
      await listed('changing', { limit: 1 }, () => store.removeEndpoint('changing'));
      assert.deepEqual((await listed('changing')).seqs, []);
    });

    test('other requests are served while a list is read', async () => {
      let turns = 0;
      let next: NodeJS.Immediate | undefined;
      const turn = (): void => {
        turns += 1;
        next = setImmediate(turn);
      };
      next = setImmediate(turn);
      await listed('many', { status: 'TIMED_OUT' });
      clearImmediate(next);
      assert.ok(turns >= 3, `${turns} turns in three looks`);
    });
  });
}
