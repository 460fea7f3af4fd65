import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DATABASES } from '../../../testing/src/test-database.ts';
import type { Job } from '../domain/job-records.ts';
import { queueFixtures, POLL_MS, SECOND } from './job-queue.fixture.ts';

for (const kind of DATABASES) {
  describe(`a time to live that ends before a sweep came, on ${kind}`, () => {
    const bench = queueFixtures(kind);

    test('ends the wait of callers with an expired job', async () => {
      const on = bench();
      const calling = on.queue.submitAndWait(
        on.request({ ttl: 10 * SECOND, sync: { wait: POLL_MS, waitGiven: true } }),
        POLL_MS,
        on.signal,
      );
      const job = await on.submit({ ttl: 10 * SECOND });
      const waiting = [on.queue, ...(kind === 'postgres' ? [on.newServer(on.otherServerStore())] : [])].map(
        (queue) => queue.waitForEnd(on.id, job.seq, POLL_MS, on.signal),
      );
      await Promise.all(waiting.map(() => on.queue.counts(on.id)));
      on.clock.advance(60 * SECOND);
      await on.sweep();
      for (const outcome of [(await calling).outcome, ...(await Promise.all(waiting))]) {
        assert.deepEqual(
          [outcome?.job.status, outcome?.payloads.error],
          ['TIMED_OUT', '"the time to live of the job is over"'],
        );
      }
    });

    test('keeps the job from every worker, and later jobs do not wait for a sweep', async () => {
      const on = bench();
      const late: Job[] = [];
      for (let count = 0; count < 20; count += 1) late.push(await on.submit({ ttl: 10 * SECOND }));
      const next = await on.submit();
      on.clock.advance(60 * SECOND);
      assert.deepEqual(
        (await on.take('w', 12)).map(({ job }) => job.id),
        [next.id],
      );
      await on.sweep();
      for (const job of late) assert.equal(await on.status(job), 'gone');
      assert.equal(await on.status(next), 'IN_PROGRESS');
      const { inQueue, inProgress, failed } = await on.queue.counts(on.id);
      assert.deepEqual({ inQueue, inProgress, failed }, { inQueue: 0, inProgress: 1, failed: late.length });
    });
  });
}
