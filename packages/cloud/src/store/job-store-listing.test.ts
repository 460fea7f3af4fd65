import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DATABASES } from '../../../testing/src/test-database.ts';
import type { Job } from '../domain/job-records.ts';
import * as transitions from '../domain/job-transitions.ts';
import { JobStoreFixture } from './job-store.fixture.ts';
import { NOW } from './queue-settings.fixture.ts';
import type { JobStore, JobListQuery } from './job-store.ts';

for (const kind of DATABASES) {
  describe(`lists of jobs in the job store on ${kind}`, () => {
    const fixture = new JobStoreFixture(kind);
    const { submit, takeAll } = fixture;
    let store: JobStore;

    before(async () => {
      store = await fixture.open();
    });
    after(fixture.close);

    test('a list has the jobs of an endpoint and their sizes, newest first, page by page', async () => {
      const [waiting, held, done, failed, cancelled] = [
        await submit('page'),
        await submit('page'),
        await submit('page'),
        await submit('page'),
        await submit('page'),
      ] as [Job, Job, Job, Job, Job];
      await submit('page elsewhere');
      const taken = await takeAll('page');
      const end = (seq: number, output: string | null, error: string | null): Promise<unknown> =>
        store.change('page', seq, (job) =>
          transitions.finish(job, { workerId: 'w1' }, { output, error }, NOW + 9),
        );
      await store.change('page', waiting.seq, (job) =>
        transitions.loseWorker(job, { workerId: 'w1' }, 'gone', NOW),
      );
      await end(done.seq, '"é"', null);
      await end(failed.seq, null, '"no"');
      await store.change('page', cancelled.seq, (job) => transitions.cancel(job, NOW + 9));
      assert.equal(taken.length, 5);
      const all = [cancelled, failed, done, held, waiting].map(({ seq }) => seq);
      const listed = async (
        look: Partial<JobListQuery> = {},
      ): Promise<{ seqs: number[]; next: number | undefined }> => {
        const { jobs, next } = await store.list('page', { maxRowsScanned: 100, now: NOW + 10, ...look });
        return { seqs: jobs.map(({ seq }) => seq), next };
      };
      assert.deepEqual(await listed(), { seqs: all, next: undefined });
      assert.deepEqual(await listed({ maxRowsScanned: 2 }), { seqs: all.slice(0, 2), next: failed.seq });
      assert.deepEqual(await listed({ maxRowsScanned: 2, before: failed.seq }), {
        seqs: all.slice(2, 4),
        next: held.seq,
      });
      assert.deepEqual(await listed({ maxRowsScanned: 2, before: held.seq }), {
        seqs: [waiting.seq],
        next: undefined,
      });
      // A row counts whatever its status, so a look may find nothing and still not be the last.
      assert.deepEqual(await listed({ maxRowsScanned: 2, status: 'COMPLETED' }), {
        seqs: [],
        next: failed.seq,
      });
      assert.deepEqual(await listed({ maxRowsScanned: 1, status: 'IN_PROGRESS' }), {
        seqs: [held.seq],
        next: held.seq,
      });
      for (const [status, job] of [
        ['IN_QUEUE', waiting],
        ['IN_PROGRESS', held],
        ['COMPLETED', done],
        ['FAILED', failed],
        ['CANCELLED', cancelled],
      ] as const)
        assert.deepEqual((await listed({ status })).seqs, [job.seq], status);
      assert.deepEqual((await listed({ status: 'TIMED_OUT' })).seqs, []);
      assert.deepEqual(
        await listed({ status: 'IN_QUEUE', maxRowsScanned: 2 }),
        { seqs: [waiting.seq], next: undefined },
        'few wait: they are found at once',
      );
      assert.deepEqual(
        await listed({ status: 'IN_QUEUE', maxRowsScanned: 1 }),
        { seqs: [], next: cancelled.seq },
        'many wait: all jobs are gone through',
      );
      assert.deepEqual(await listed({ status: 'IN_QUEUE', maxRowsScanned: 1, before: held.seq }), {
        seqs: [waiting.seq],
        next: waiting.seq,
      });
      assert.deepEqual(
        (await listed({ now: NOW + 365 * 86_400_000 })).seqs,
        [held.seq, waiting.seq],
        'what is over is not there',
      );

      const whole = await store.findAll('page', [waiting.seq, done.seq, 12_345_678, failed.seq]);
      assert.deepEqual(
        whole,
        await Promise.all([failed, done, waiting].map(({ seq }) => store.find('page', seq))),
      );
      assert.deepEqual(await store.findAll('page elsewhere', [done.seq]), []);
      assert.deepEqual(await store.findAll('page', []), []);
      const { jobs: sized } = await store.list('page', { maxRowsScanned: 100, now: NOW + 10 });
      for (const {
        job,
        payloads: { request, output, error },
      } of whole)
        assert.equal(
          sized.find(({ seq }) => seq === job.seq)?.bytes,
          Buffer.byteLength(request + (output ?? '') + (error ?? '')),
        );
    });
  });
}
