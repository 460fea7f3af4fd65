import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { ManualClock } from '../support/clock.ts';
import { acceptsListOnJobTake, TakeAhead } from './take-ahead.ts';
import { WorkerHeartbeats } from './worker-heartbeats.ts';

const SDK = 'RunPod-Python-SDK/1.12.0 (Linux 6.1; x86_64) Language/Python 3.11.7';

describe('jobs in one answer to job-take', () => {
  let clock: ManualClock;
  let heartbeats: WorkerHeartbeats;
  let takeAhead: TakeAhead;
  let nextSeq: number;

  beforeEach(() => {
    clock = new ManualClock();
    heartbeats = new WorkerHeartbeats(clock);
    takeAhead = new TakeAhead(heartbeats, true);
    nextSeq = 1;
  });

  const room = (userAgent = SDK, workerId = 'w') => takeAhead.roomFor('e', workerId, userAgent);

  /** The worker takes jobs together and runs each for so many milliseconds. Answers how long each waited. */
  function run(...milliseconds: number[]): number[] {
    const jobs = milliseconds.map(() => {
      const seq = nextSeq++;
      return { seq, id: `j${seq}`, lease: `l${seq}`, takenAt: clock.now() };
    });
    heartbeats.assignJobs('e', 'w', ...jobs);
    if (jobs.length > 1) heartbeats.recordTakenTogether('e', 'w', jobs);
    return jobs.map(({ seq }, index) => {
      clock.advance(milliseconds[index] ?? 0);
      const waited = takeAhead.onResult('e', 'w', seq, false);
      heartbeats.unassignJob('e', 'w', seq);
      return waited;
    });
  }

  test('are one while nothing is known of the endpoint, and where jobs are long', () => {
    assert.equal(room(), 1);
    run(2_000);
    assert.equal(room(), 1);
    run(700);
    assert.equal(room(), 1);
  });

  test('are as many as should end within the second that the SDK sleeps', () => {
    run(150);
    // A first job includes the time until the SDK starts it.
    assert.equal(room(), 6);
    run(110, 5, 10, 6);
    assert.equal(room(), 128);
    run(...Array.from({ length: 21 }, () => 1));
    assert.equal(room(), 400);
  });

  test('are fewer where single jobs take much longer than most, and one where a job was long', () => {
    run(100, ...Array.from({ length: 19 }, () => 2), 200);
    assert.equal(room(), 45);
    run(110, 1, 1_200, 1);
    assert.equal(room(), 1);
  });

  test('a first job that is long ends it, also where those after it were short', () => {
    run(100, 5, 5, 5);
    assert.equal(room(), 180);
    run(3_000);
    assert.equal(room(), 1);
  });

  test('each job waits for those before it, which is no part of its run time', () => {
    assert.deepEqual(run(100, 20, 30), [0, 100, 120]);
    clock.advance(5_000);
    assert.deepEqual(run(10), [0]);
    assert.deepEqual(run(10), [0]);
  });

  test('jobs that were taken one by one count from their take, also where they overlap', () => {
    heartbeats.assignJobs('e', 'w', { seq: 1, id: 'a', lease: 'a' }, { seq: 2, id: 'b', lease: 'b' });
    clock.advance(800);
    assert.deepEqual(
      [takeAhead.onResult('e', 'w', 1, false), takeAhead.onResult('e', 'w', 2, false)],
      [0, 0],
    );
    assert.equal(room(), 1);
  });

  test('only for SDKs that accept a list, for workers that never asked for several, and where it is on', () => {
    run(101);
    assert.equal(room(), 8);
    assert.equal(room(''), 1);
    assert.equal(room('RunPod-Python-SDK/1.7.0 (Linux)'), 1);
    heartbeats.recordBatchTake('e', 'many');
    assert.equal(room(SDK, 'many'), 1);
    assert.equal(new TakeAhead(heartbeats, false).roomFor('e', 'w', SDK), 1);
    const accepted = ['1.7.13', '1.8.1', '1.9.1', '1.10.1', '1.11.0', '1.12.0'];
    for (const version of accepted)
      assert.ok(acceptsListOnJobTake(`RunPod-Python-SDK/${version} (x)`), version);
    for (const version of ['1.6.2', '1.7.0', '1.7.12', '1.13.0', '2.8.0', '0.10.0'])
      assert.ok(!acceptsListOnJobTake(`RunPod-Python-SDK/${version} (x)`), version);
  });

  test('an endpoint whose jobs ask for a new worker gets one at a time', () => {
    run(101);
    heartbeats.assignJobs('e', 'w', { seq: 90, id: 'r', lease: 'r' });
    takeAhead.onResult('e', 'w', 90, true);
    assert.equal(room(), 1);
  });

  test('of a worker that is lost, only the oldest can have been started', () => {
    run(101);
    room();
    const jobs = [1, 2, 3].map((n) => ({ seq: 100 + n, id: `x${n}`, lease: `x${n}`, takenAt: clock.now() }));
    heartbeats.assignJobs('e', 'w', ...jobs);
    const unstarted = () => heartbeats.unstartedJobs('e', 'w').map(({ seq }) => seq);
    assert.deepEqual(unstarted(), [102, 103]);
    heartbeats.unassignJob('e', 'w', 101);
    assert.deepEqual(unstarted(), [103]);
    // It may run more at a time than was known.
    heartbeats.recordBatchTake('e', 'w');
    assert.deepEqual(unstarted(), []);
  });
});
