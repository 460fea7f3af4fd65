import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Job, WorkerHeartbeat } from '../domain/job-records.ts';
import { ManualClock } from '../support/clock.ts';
import { WORKER_TIMEOUT_MS } from './connected-worker.ts';
import { WorkerHeartbeats } from './worker-heartbeats.ts';

const SECOND = 1_000;
const HOUR = 3_600 * SECOND;

function fixture(): { clock: ManualClock; heartbeats: WorkerHeartbeats } {
  const clock = new ManualClock();
  return { clock, heartbeats: new WorkerHeartbeats(clock) };
}

/** A job that a worker holds. */
const job = (seq: number): { seq: number; id: string; lease: string } => ({
  seq,
  id: `job${seq}`,
  lease: `lease${seq}`,
});

describe('a worker', () => {
  test('is alive while a request of it is open, and for a while after the last one', () => {
    const { clock, heartbeats } = fixture();
    const left = heartbeats.requestStarted('e', 'w');
    clock.advance(10 * WORKER_TIMEOUT_MS);
    assert.equal(heartbeats.isAlive('e', 'w'), true);
    left();
    clock.advance(WORKER_TIMEOUT_MS - 1);
    assert.equal(heartbeats.isAlive('e', 'w'), true);
    clock.advance(1);
    assert.equal(heartbeats.isAlive('e', 'w'), false);
    heartbeats.recordRunningJobs('e', 'w', []);
    assert.equal(heartbeats.isAlive('e', 'w'), true);
  });

  test('without a heartbeat may be alive: it is unknown, and has time after a start', () => {
    const { clock, heartbeats } = fixture();
    assert.equal(heartbeats.isAlive('e', 'w'), true);
    clock.advance(WORKER_TIMEOUT_MS);
    assert.equal(heartbeats.isAlive('e', 'w'), undefined);
  });

  test('of one endpoint is not a worker of another', () => {
    const { clock, heartbeats } = fixture();
    clock.advance(WORKER_TIMEOUT_MS);
    heartbeats.recordHeartbeat('e', 'w');
    assert.deepEqual(
      [heartbeats.isAlive('e', 'w'), heartbeats.isAlive('f', 'w'), heartbeats.liveWorkers('f')],
      [true, undefined, []],
    );
    heartbeats.removeEndpoint('e');
    assert.deepEqual(heartbeats.liveWorkers('e'), []);
  });

  test('is gone since it left unless another heartbeat came', () => {
    const { clock, heartbeats } = fixture();
    heartbeats.requestStarted('e', 'w')();
    const since = clock.now();
    clock.advance(SECOND);
    assert.equal(heartbeats.isGoneSince('e', 'w', since), true);
    const left = heartbeats.requestStarted('e', 'w');
    assert.equal(heartbeats.isGoneSince('e', 'w', since), false);
    left();
    assert.equal(heartbeats.isGoneSince('e', 'w', since), false);
    assert.equal(heartbeats.isGoneSince('e', 'never', since), true);
  });

  test('is busy with its jobs until they are released', () => {
    const { heartbeats } = fixture();
    heartbeats.assignJobs('e', 'w', job(1));
    heartbeats.assignJobs('e', 'w', job(2));
    assert.equal(heartbeats.liveWorkers('e')[0]?.busy, 2);
    heartbeats.unassignJob('e', 'w', 1);
    heartbeats.unassignJob('e', 'unknown', 2);
    heartbeats.unassignJob('e', null, 2);
    assert.equal(heartbeats.liveWorkers('e')[0]?.busy, 1);
  });

  test('has worked since its first job, from here or by another server', () => {
    const { clock, heartbeats } = fixture();
    for (const workerId of ['idle', 'here', 'elsewhere']) heartbeats.recordHeartbeat('e', workerId);
    heartbeats.assignJobs('e', 'here', job(1));
    heartbeats.unassignJob('e', 'here', 1);
    heartbeats.syncWithStore(
      [{ ...job(2), endpointId: 'e', workerId: 'elsewhere', takenAt: clock.now() } as Job],
      clock.now(),
    );
    assert.deepEqual(
      ['idle', 'here', 'elsewhere'].map((workerId) => heartbeats.statusOf('e', workerId)?.worked),
      [false, true, true],
    );
  });

  test('cannot have started jobs beyond its concurrency', () => {
    const { heartbeats } = fixture();
    const notBegun = (): number[] => heartbeats.unstartedJobs('e', 'w').map(({ seq }) => seq);
    for (let seq = 1; seq <= 5; seq += 1) heartbeats.assignJobs('e', 'w', job(seq));
    assert.deepEqual(notBegun(), [], 'it never said how many it runs');
    heartbeats.recordConcurrency('e', 'w', 2);
    assert.deepEqual(notBegun(), [3, 4, 5]);
    heartbeats.unassignJob('e', 'w', 2);
    assert.deepEqual(notBegun(), [4, 5]);
    // Running jobs continue where the concurrency shrinks.
    heartbeats.recordConcurrency('e', 'w', 1);
    assert.deepEqual(notBegun(), [4, 5]);
    heartbeats.recordConcurrency('e', 'w', 3);
    assert.deepEqual(notBegun(), [5]);
    assert.deepEqual(heartbeats.unstartedJobs('e', 'unknown'), []);
  });

  test('starts no job after the result in which it asked to be replaced, on the channel', () => {
    const { heartbeats } = fixture();
    const notBegun = (): number[] => heartbeats.unstartedJobs('e', 'w').map(({ seq }) => seq);
    for (let seq = 1; seq <= 4; seq += 1) heartbeats.assignJobs('e', 'w', job(seq));
    heartbeats.recordConcurrency('e', 'w', 2);
    heartbeats.unassignJob('e', 'w', 1);
    heartbeats.recordLastResult('e', 'w');
    assert.deepEqual(notBegun(), [4], 'the public protocol: it may go on with what it took');
    heartbeats.recordChannel('e', 'w');
    heartbeats.recordLastResult('e', 'w');
    assert.deepEqual(notBegun(), [3, 4]);
    heartbeats.recordConcurrency('e', 'w', 2);
    assert.deepEqual(notBegun(), [4], 'it came back');
  });

  test('is paused for as long as requested', () => {
    const { clock, heartbeats } = fixture();
    assert.equal(heartbeats.isPaused('e', 'w'), false);
    heartbeats.pause('e', 'w', 15 * SECOND);
    clock.advance(15 * SECOND - 1);
    assert.equal(heartbeats.isPaused('e', 'w'), true);
    clock.advance(1);
    assert.equal(heartbeats.isPaused('e', 'w'), false);
  });

  test('that was dismissed is paused for good, and forgotten after a day without a reported end', async () => {
    const { clock, heartbeats } = fixture();
    const store = { saveHeartbeats: async () => undefined };
    heartbeats.drain('e', 'w');
    heartbeats.recordHeartbeat('e', 'other');
    for (let hour = 0; hour < 23; hour += 1) {
      clock.advance(HOUR);
      await heartbeats.flush(store);
    }
    heartbeats.recordTake('e', 'w', true);
    assert.deepEqual([heartbeats.isPaused('e', 'w'), heartbeats.statusOf('e', 'other')], [true, undefined]);
    clock.advance(24 * HOUR + 1);
    await heartbeats.flush(store);
    assert.equal(heartbeats.statusOf('e', 'w'), undefined);
  });

  test('is not silent or paused for longer when the clock is set back', () => {
    const { clock, heartbeats } = fixture();
    heartbeats.pause('e', 'w', 15 * SECOND);
    heartbeats.drain('e', 'leaving');
    clock.advance(SECOND);
    heartbeats.correctClockSetBack();
    clock.advance(-HOUR);
    heartbeats.correctClockSetBack();
    assert.deepEqual([heartbeats.isAlive('e', 'w'), heartbeats.isPaused('e', 'w')], [true, true]);
    clock.advance(14 * SECOND);
    assert.equal(heartbeats.isPaused('e', 'w'), false);
    clock.advance(WORKER_TIMEOUT_MS);
    heartbeats.correctClockSetBack();
    assert.deepEqual(
      [heartbeats.isAlive('e', 'w'), heartbeats.isAlive('e', 'unknown'), heartbeats.liveWorkers('e')],
      [false, undefined, []],
    );
    assert.equal(heartbeats.isPaused('e', 'leaving'), true);
  });

  test('with a heartbeat just after the clock was set back stays alive', () => {
    const { clock, heartbeats } = fixture();
    heartbeats.recordHeartbeat('e', 'w');
    clock.advance(-HOUR);
    heartbeats.recordHeartbeat('e', 'w');
    heartbeats.correctClockSetBack();
    clock.advance(WORKER_TIMEOUT_MS - 1);
    assert.equal(heartbeats.isAlive('e', 'w'), true);
  });

  test('that reports a failed check is unhealthy, with a text that any database can store', () => {
    const { heartbeats } = fixture();
    heartbeats.unhealthy('e', 'w', 'gpu: no\0 device');
    assert.equal(heartbeats.liveWorkers('e')[0]?.unhealthy, 'gpu: no device');
    heartbeats.recordRunningJobs('e', 'w', []);
    assert.equal(heartbeats.liveWorkers('e')[0]?.unhealthy, 'gpu: no device');
    heartbeats.recordTake('e', 'w', true);
    assert.equal(heartbeats.liveWorkers('e')[0]?.unhealthy, null, 'it has started anew');
  });
});

describe('a job', () => {
  const lost = (heartbeats: WorkerHeartbeats): [number, boolean][] =>
    heartbeats.lostJobs().map(({ seq, wasConfirmed }) => [seq, wasConfirmed]);

  test('is lost when its worker reports idle for a while', () => {
    const { clock, heartbeats } = fixture();
    heartbeats.assignJobs('e', 'w', job(1));
    heartbeats.recordTake('e', 'w', false);
    clock.advance(SECOND);
    heartbeats.recordTake('e', 'w', true);
    clock.advance(14_999);
    heartbeats.recordTake('e', 'w', true);
    assert.deepEqual(lost(heartbeats), []);
    clock.advance(1);
    assert.deepEqual(lost(heartbeats), [[1, false]]);
  });

  test('that is on its way to its worker is not doubted because another poll says idle', () => {
    const { clock, heartbeats } = fixture();
    heartbeats.assignJobs('e', 'w', job(1));
    clock.advance(SECOND - 1);
    heartbeats.recordTake('e', 'w', true);
    clock.advance(60 * SECOND);
    assert.deepEqual(lost(heartbeats), []);
  });

  test('that is on its way is not doubted because a list left before it arrived', () => {
    const { clock, heartbeats } = fixture();
    heartbeats.recordChannel('e', 'w');
    heartbeats.assignJobs('e', 'w', job(1));
    clock.advance(1);
    heartbeats.recordTake('e', 'w', true);
    heartbeats.recordRunningJobs('e', 'w', []);
    // A handler that blocks its interpreter keeps the next list from being sent.
    clock.advance(60 * SECOND);
    assert.deepEqual(lost(heartbeats), []);
  });

  test('that was on its way when the connection broke is lost when the list of the next one lacks it', () => {
    const { clock, heartbeats } = fixture();
    heartbeats.assignJobs('e', 'w', job(1));
    clock.advance(1);
    heartbeats.recordChannel('e', 'w');
    heartbeats.recordTake('e', 'w', true);
    heartbeats.recordRunningJobs('e', 'w', []);
    clock.advance(15 * SECOND);
    assert.deepEqual(lost(heartbeats), [[1, false]]);
  });

  test('is lost when a worker that polled for work since leaves it out of its list, and not before it polled', () => {
    const { clock, heartbeats } = fixture();
    heartbeats.recordTake('e', 'w', false);
    heartbeats.assignJobs('e', 'w', job(1));
    for (let time = 0; time < 10; time += 1) {
      clock.advance(10 * SECOND);
      heartbeats.recordRunningJobs('e', 'w', []);
    }
    assert.deepEqual(lost(heartbeats), [], 'the loop that would list it may be blocked');
    heartbeats.recordTake('e', 'w', false);
    heartbeats.recordRunningJobs('e', 'w', ['another']);
    clock.advance(15 * SECOND);
    assert.deepEqual(lost(heartbeats), [[1, false]]);
  });

  test('that the worker reports is not lost; one that it had reported is known to have started', () => {
    const { clock, heartbeats } = fixture();
    for (const seq of [1, 2, 3]) heartbeats.assignJobs('e', 'w', job(seq));
    clock.advance(SECOND);
    heartbeats.recordTake('e', 'w', true);
    clock.advance(14 * SECOND);
    heartbeats.recordJobActivity('e', 'w', 1);
    heartbeats.recordRunningJobs('e', 'w', ['job2']);
    clock.advance(SECOND);
    assert.deepEqual(lost(heartbeats), [[3, false]]);
    heartbeats.unassignJob('e', 'w', 3);
    heartbeats.recordTake('e', 'w', true);
    clock.advance(15 * SECOND);
    assert.deepEqual(lost(heartbeats), [
      [1, true],
      [2, true],
    ]);
  });

  test('is not known to have started by what its worker says of an earlier attempt', () => {
    const { clock, heartbeats } = fixture();
    for (const seq of [1, 2, 3]) heartbeats.assignJobs('e', 'w', job(seq));
    heartbeats.recordJobActivity('e', 'w', 1, 'an earlier lease');
    heartbeats.recordRunningJobs('e', 'w', ['job2', 'job3']);
    heartbeats.recordAttemptEnd('e', 'w', 2, 'an earlier lease');
    heartbeats.recordAttemptEnd('e', 'w', 3, 'lease3');
    clock.advance(SECOND);
    heartbeats.recordTake('e', 'w', true);
    clock.advance(15 * SECOND);
    assert.deepEqual(lost(heartbeats), [
      [1, false],
      [2, false],
      [3, true],
    ]);
  });

  test('is given up by its worker in the attempt that it names, and in no other', () => {
    const { heartbeats } = fixture();
    heartbeats.assignJobs('e', 'w', job(1), job(2));
    heartbeats.unassignAttempt('e', 'w', 1, 'an earlier lease');
    heartbeats.unassignAttempt('e', 'w', 2, 'lease2');
    heartbeats.unassignAttempt('e', 'unknown', 2, 'lease2');
    assert.equal(heartbeats.statusOf('e', 'w')?.busy, 1);
  });

  test('gets a new grace period on a server that was paused: what the worker sent meanwhile is still unread', () => {
    const { clock, heartbeats } = fixture();
    heartbeats.assignJobs('e', 'w', job(1));
    clock.advance(SECOND);
    heartbeats.recordTake('e', 'w', true);
    clock.advance(60 * SECOND);
    heartbeats.onProcessResumed();
    assert.deepEqual(lost(heartbeats), []);
    clock.advance(15 * SECOND);
    assert.deepEqual(lost(heartbeats), [[1, false]]);
  });

  test('is not lost later when the clock is set back', () => {
    const { clock, heartbeats } = fixture();
    heartbeats.assignJobs('e', 'w', job(1));
    clock.advance(SECOND);
    heartbeats.recordTake('e', 'w', true);
    heartbeats.correctClockSetBack();
    clock.advance(-HOUR);
    heartbeats.correctClockSetBack();
    clock.advance(15 * SECOND);
    assert.deepEqual(lost(heartbeats), [[1, false]]);
  });
});

describe('heartbeats for other servers', () => {
  test('contain the workers seen since the last write, at an interval', async () => {
    const { clock, heartbeats } = fixture();
    const told: WorkerHeartbeat[][] = [];
    const store = { saveHeartbeats: async (records: WorkerHeartbeat[]) => void told.push(records) };
    heartbeats.recordHeartbeat('e', 'w1');
    const left = heartbeats.requestStarted('e', 'w2');
    await heartbeats.flush(store);
    assert.deepEqual(
      told.at(-1)?.map(({ workerId }) => workerId),
      ['w1', 'w2'],
    );
    heartbeats.recordHeartbeat('e', 'w1');
    await heartbeats.flush(store);
    assert.equal(told.length, 1);
    clock.advance(5 * SECOND);
    await heartbeats.flush(store);
    assert.deepEqual(
      told.at(-1)?.map(({ workerId }) => workerId),
      ['w1'],
      'one that waits, as before, is told less often',
    );
    clock.advance(10 * SECOND);
    await heartbeats.flush(store);
    assert.deepEqual(
      told.at(-1)?.map(({ workerId, seenAt }) => [workerId, seenAt]),
      [['w2', clock.now()]],
    );
    left();
    clock.advance(2 * WORKER_TIMEOUT_MS + 1);
    await heartbeats.flush(store);
    clock.advance(5 * SECOND);
    await heartbeats.flush(store);
    assert.equal(heartbeats.isAlive('e', 'w1'), undefined, 'who was not seen for long is forgotten');
  });

  test('are written again at the next turn where the write failed, with what was heard meanwhile', async () => {
    const { clock, heartbeats } = fixture();
    const told: [workerId: string, seenAt: number][][] = [];
    let write = async (): Promise<void> => undefined;
    const store = {
      saveHeartbeats: async (records: WorkerHeartbeat[]) => {
        await write();
        told.push(records.map(({ workerId, seenAt }) => [workerId, seenAt]));
      },
    };
    heartbeats.requestStarted('e', 'waits');
    await heartbeats.flush(store);
    clock.advance(15 * SECOND);
    heartbeats.recordHeartbeat('e', 'heard');
    write = () => Promise.reject(new Error('the store is away'));
    await assert.rejects(heartbeats.flush(store), /the store is away/);
    const heardAt = clock.now();
    clock.advance(5 * SECOND);
    write = async () => void heartbeats.recordHeartbeat('e', 'heard');
    await heartbeats.flush(store);
    assert.deepEqual(told.at(-1), [
      ['waits', clock.now()],
      ['heard', heardAt],
    ]);
    const heardAgainAt = clock.now();
    clock.advance(5 * SECOND);
    write = async () => undefined;
    await heartbeats.flush(store);
    assert.deepEqual(told.at(-1), [['heard', heardAgainAt]]);
    clock.advance(5 * SECOND);
    await heartbeats.flush(store);
    assert.equal(told.length, 3);
  });
});
