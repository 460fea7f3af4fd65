import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, test } from 'node:test';
import { DATABASES } from '../../../testing/src/test-database.ts';
import type { Job, JobOutcome } from '../domain/job-records.ts';
import type { JobStore } from '../store/job-store.ts';
import type { Wakeup } from '../store/wakeup-bus.ts';
import { queueFixtures, POLL_MS, SECOND } from './job-queue.fixture.ts';

function assertExpired(outcome: JobOutcome | undefined): void {
  assert.deepEqual(
    [outcome?.job.status, outcome?.payloads.error],
    ['TIMED_OUT', '"the time to live of the job is over"'],
  );
}

/** `found` resolves once so many callers have found the job that they wait for. */
function signalFound(store: JobStore, callers: number): { store: JobStore; found: Promise<void> } {
  const found = Promise.withResolvers<void>();
  let waiting = callers;
  const find: JobStore['find'] = async (endpointId, seq) => {
    const job = await store.find(endpointId, seq);
    waiting -= 1;
    if (waiting === 0) found.resolve();
    return job;
  };
  return { store: { ...store, find }, found: found.promise };
}

for (const kind of DATABASES) {
  describe(`a time to live that ends before a sweep came, on ${kind}`, () => {
    const bench = queueFixtures(kind);

    test('ends the wait of callers with an expired job', async () => {
      const on = bench();
      const { store, found } = signalFound(on.store, 1);
      on.newServer(store);
      const calling = on.queue.submitAndWait(
        on.request({ ttl: 10 * SECOND, sync: { wait: POLL_MS, waitGiven: true } }),
        POLL_MS,
        on.signal,
      );
      const job = await on.submit({ ttl: 10 * SECOND });
      const waiting = on.queue.waitForEnd(on.id, job.seq, POLL_MS, on.signal);
      await found;
      on.clock.advance(60 * SECOND);
      await on.sweep();
      for (const outcome of [(await calling).outcome, await waiting]) assertExpired(outcome);
    });

    test('ends waits on another server that knows of the job', async () => {
      const on = bench();
      const told = new EventEmitter<{ wakeup: [Wakeup] }>();
      const [job, lost] = [await on.submit({ ttl: 10 * SECOND }), await on.submit({ ttl: 10 * SECOND })];
      const { store, found } = signalFound(on.store, 2);
      const other = on.newServer(store, (handler) => told.on('wakeup', handler));
      const waiting = other.waitForEnd(on.id, job.seq, POLL_MS, on.signal);
      const notTold = other.waitForEnd(on.id, lost.seq, SECOND, on.signal);
      await found;
      on.clock.advance(60 * SECOND);
      on.newServer();
      await on.sweep();
      told.emit('wakeup', { kind: 'job', endpointId: on.id, seq: job.seq });
      assertExpired(await waiting);
      // It may have failed or been purged before; nobody knows.
      assert.equal(await notTold, undefined);
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
