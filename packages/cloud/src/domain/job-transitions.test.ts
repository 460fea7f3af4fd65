import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Job, JobChange } from './job-records.ts';
import { hasEnded } from './job-status.ts';
import { newJob } from '../queue/job-submission.ts';
import * as transitions from './job-transitions.ts';

const START = 1_800_000_000_000;
const endpoint = {
  id: 'e',
  accountId: 'a',
  executionTimeout: 60_000,
  jobTtl: 86_400_000,
  retention: null,
  maxRetries: 1,
};
const fresh = (over: Partial<Job> = {}): Job => ({
  ...newJob(endpoint, 'a', '{"input":1}', {}, 7, START).job,
  ...over,
});
const taken = (worker = 'w', lease = 'l', at = START): Job =>
  transitions.take(fresh(), worker, lease, at).job;
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);

describe('a job', () => {
  test('is taken, and ends with the result of its holder', () => {
    const running = taken('w', 'l', START + 40);
    assert.deepEqual(
      [running.status, running.attempt, running.workerId, running.takenAt],
      ['IN_PROGRESS', 1, 'w', START + 40],
    );
    const done = transitions.finish(
      running,
      { workerId: 'w', lease: 'l' },
      { output: '1', error: null },
      START + 90,
    );
    assert.deepEqual([done?.job.status, done?.job.lease, done?.output], ['COMPLETED', null, '1']);
    assert.equal(
      transitions.finish(running, { workerId: 'w' }, { output: null, error: '"x"' }, START)?.job.status,
      'FAILED',
    );
  });

  test('ignores results of workers without its lease', () => {
    const running = taken('w', 'new');
    const result = { output: '1', error: null };
    assert.equal(transitions.finish(running, { workerId: 'other' }, result, START), undefined);
    assert.equal(transitions.finish(running, { workerId: 'w', lease: 'old' }, result, START), undefined);
    assert.equal(transitions.finish(fresh(), { workerId: 'w' }, result, START), undefined);
    assert.equal(transitions.progress(running, { workerId: 'other' }, '1'), undefined);
    assert.equal(transitions.loseWorker(running, { workerId: 'other' }, 'gone', START), undefined);
    assert.equal(transitions.returnToQueue(running, { workerId: 'w', lease: 'old' }, START), undefined);
  });

  test('goes back to its old place when its worker is lost, as often as it may, and then fails', () => {
    const once = transitions.loseWorker(taken(), { workerId: 'w' }, 'gone', START + 5);
    assert.deepEqual(
      [once?.job.status, once?.job.position, once?.job.retries, once?.job.retriesLeft, once?.clearChunks],
      ['IN_QUEUE', 7, 1, 0, true],
    );
    const again = transitions.take(once?.job as Job, 'w2', 'l2', START + 9).job;
    const twice = transitions.loseWorker(again, { workerId: 'w2' }, 'gone', START + 12);
    assert.deepEqual([twice?.job.status, twice?.error], ['FAILED', '"gone (after 1 retry)"']);
  });

  test('that did not reach its worker goes back as if never taken', () => {
    const change = transitions.returnToQueue(
      { ...taken(), drained: 3 },
      { workerId: 'w', lease: 'l' },
      START,
    );
    const back = change?.job;
    assert.deepEqual([back?.status, back?.attempt, back?.retries, back?.retriesLeft], ['IN_QUEUE', 0, 0, 1]);
    assert.deepEqual([change?.clearChunks, back?.drained], [true, 0]);
  });

  test('that was probably never started goes back without a retry, but not forever', () => {
    let job = fresh();
    const holder = { workerId: 'w', lease: 'l' };
    const retried = transitions.loseWorker(taken(), holder, 'gone', START)?.job as Job;
    for (job = retried; ; ) {
      const running = transitions.take(job, 'w', 'l', START).job;
      const change = transitions.returnUnstarted({ ...running, drained: 3 }, holder, START);
      if (change === undefined) break;
      job = change.job;
      assert.deepEqual([job.status, job.retries, job.retriesLeft, job.position], ['IN_QUEUE', 1, 0, 7]);
      assert.deepEqual([change.clearChunks, change.output, job.drained], [true, null, 0]);
    }
    assert.equal(job.attempt - 1, transitions.MAX_FREE_RETURNS);
    assert.equal(transitions.returnUnstarted(taken(), { workerId: 'w', lease: 'old' }, START), undefined);
  });

  test('is retried by hand only after it failed, at the end of the queue, with its time to live anew', () => {
    const failed = transitions.finish(
      taken(),
      { workerId: 'w' },
      { output: null, error: '"x"' },
      START + 1_000,
    )?.job as Job;
    const retried = transitions.retry(failed, 99, START + 5_000);
    assert.deepEqual(
      [retried?.job.status, retried?.job.position, retried?.job.ttlAt, retried?.output, retried?.error],
      ['IN_QUEUE', 99, START + 5_000 + 86_400_000, null, null],
    );
    for (const status of ['IN_QUEUE', 'IN_PROGRESS', 'COMPLETED', 'CANCELLED'] as const)
      assert.equal(transitions.retry(fresh({ status }), 1, START), undefined);
  });

  test('ends by its time to live, its execution timeout and its retention', () => {
    const old = transitions.onDue(fresh(), START + 86_400_000, true);
    assert.deepEqual([old?.job.status, old?.remove], ['TIMED_OUT', true]);
    const slow = transitions.onDue(taken(), START + 60_000, true);
    assert.deepEqual([slow?.job.status, slow?.remove], ['TIMED_OUT', undefined]);
    const done = transitions.finish(taken(), { workerId: 'w' }, { output: '1', error: null }, START)
      ?.job as Job;
    assert.equal(done.dueAt, START + 30 * 60_000);
    assert.equal(transitions.onDue(done, done.dueAt - 1, true), undefined);
    assert.equal(transitions.onDue(done, done.dueAt, true)?.remove, true);
  });

  test('is checked again later if its worker is alive, and requeued if not', () => {
    const running = taken();
    assert.equal(running.dueAt, START + transitions.LEASE_MS);
    assert.equal(
      transitions.onDue(running, running.dueAt, true)?.job.dueAt,
      running.dueAt + transitions.LEASE_MS,
    );
    assert.equal(transitions.onDue(running, running.dueAt, false)?.job.status, 'IN_QUEUE');
  });

  test('without an execution limit never runs out of it', () => {
    const running = transitions.take(fresh({ executionTimeout: 0 }), 'w', 'l', START).job;
    assert.equal(transitions.onDue(running, START + 3_600_000, true)?.job.status, 'IN_PROGRESS');
  });
});

/** Any history, however the moves come. */
const move = fc.oneof(
  fc.record({ kind: fc.constant('take' as const), worker: fc.constantFrom('w1', 'w2') }),
  fc.record({
    kind: fc.constantFrom(
      'finish' as const,
      'fail' as const,
      'lose' as const,
      'returnTaken' as const,
      'returnUnstarted' as const,
      'progress' as const,
    ),
    worker: fc.constantFrom('w1', 'w2'),
  }),
  fc.record({
    kind: fc.constantFrom('cancel' as const, 'retry' as const, 'dueAlive' as const, 'dueDead' as const),
    worker: fc.constant(''),
  }),
);

test(`a job ends once, is held by one, and changes after its end only by a retry (seed ${seed})`, () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(move, fc.integer({ min: 0, max: 40_000 })), { maxLength: 40 }),
      (history) => {
        let job = fresh();
        let now = START;
        let leases = 0;
        let results = 0;
        for (const [{ kind, worker }, later] of history) {
          now += later;
          const before = job;
          const change = apply(kind, worker, job, now, `lease ${++leases}`);
          if (change === undefined) continue;
          job = change.job;
          if (hasEnded(before))
            assert.ok(kind === 'retry' || change.remove === true, `${before.status} changed by ${kind}`);
          if (kind === 'finish' || kind === 'fail') {
            results += 1;
            assert.equal(before.workerId, worker);
            assert.equal(before.status, 'IN_PROGRESS');
          }
          if (kind === 'retry') results = 0;
          assert.ok(results <= 1, 'two results');
          assert.equal(job.status === 'IN_PROGRESS', job.lease !== null);
          assert.equal(hasEnded(job), job.endedAt !== null);
          assert.ok(job.retriesLeft >= 0 && job.retries + job.retriesLeft === 1);
          assert.ok(job.dueAt <= Math.max(job.ttlAt, now + transitions.LEASE_MS));
          if (change.remove === true) return;
        }
      },
    ),
    { seed, numRuns: 2_000 },
  );
});

function apply(kind: string, worker: string, job: Job, now: number, lease: string): JobChange | undefined {
  switch (kind) {
    case 'take':
      return job.status === 'IN_QUEUE' ? transitions.take(job, worker, lease, now) : undefined;
    case 'finish':
      return transitions.finish(job, { workerId: worker }, { output: '1', error: null }, now);
    case 'fail':
      return transitions.finish(job, { workerId: worker }, { output: null, error: '"x"' }, now);
    case 'lose':
      return transitions.loseWorker(job, { workerId: worker }, 'gone', now);
    case 'returnTaken':
      return transitions.returnToQueue(job, { workerId: worker }, now);
    case 'returnUnstarted':
      return transitions.returnUnstarted(job, { workerId: worker }, now);
    case 'progress':
      return transitions.progress(job, { workerId: worker }, '1');
    case 'cancel':
      return transitions.cancel(job, now);
    case 'retry':
      return transitions.retry(job, now, now);
    case 'dueAlive':
      return transitions.onDue(job, now, true);
    default:
      return transitions.onDue(job, now, false);
  }
}
