import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ManualClock } from '../support/clock.ts';
import { LightCancelSignal } from '../support/cancel-signal.ts';
import { newJobId } from '../domain/job-ids.ts';
import { WorkerHeartbeats } from './worker-heartbeats.ts';
import { CancellationRegistry } from './cancellation-registry.ts';

const SECOND = 1_000;

function fixture(): { clock: ManualClock; heartbeats: WorkerHeartbeats; stops: CancellationRegistry } {
  const clock = new ManualClock();
  const heartbeats = new WorkerHeartbeats(clock);
  return { clock, heartbeats, stops: new CancellationRegistry(clock, heartbeats) };
}

describe('a worker', () => {
  test('is sent its cancellations immediately, and again every few seconds', () => {
    const { clock, stops } = fixture();
    assert.deepEqual(stops.due('e', 'w'), []);
    stops.add('e', 'w', 'j1');
    assert.deepEqual([stops.due('e', 'w'), stops.due('e', 'w')], [['j1'], []]);
    clock.advance(SECOND);
    stops.add('e', 'w', 'j1');
    stops.add('e', 'w', 'j2');
    assert.deepEqual(stops.due('e', 'w'), ['j2']);
    clock.advance(2 * SECOND);
    assert.deepEqual(stops.due('e', 'w'), ['j1']);
  });

  test('waits until there is a cancellation, or until the timeout', async () => {
    const { clock, stops } = fixture();
    const { signal } = new AbortController();
    const [first, released, all] = [
      stops.waitForDue('e', 'w', 60 * SECOND, signal),
      stops.waitForDue('e', 'released', 60 * SECOND, signal),
      stops.waitForDue('e', 'other', 60 * SECOND, signal),
    ];
    stops.add('e', 'w', 'j1');
    assert.deepEqual(await first, ['j1']);
    stops.endLongPoll('e', 'released');
    assert.deepEqual(await released, []);
    stops.wakeAll();
    assert.deepEqual([await all, await stops.waitForDue('e', 'other', 5, signal)], [[], []]);
    const again = stops.waitForDue('e', 'w', 60 * SECOND, signal);
    clock.advance(3 * SECOND);
    assert.deepEqual(await again, ['j1'], 'as soon as it has to be said again');
  });

  test('is not sent the cancellations of others', () => {
    const { stops } = fixture();
    stops.add('e', 'w', 'j1');
    assert.deepEqual([stops.due('e', 'other'), stops.due('other', 'w')], [[], []]);
  });

  test('is not sent it again once it has posted a result, no longer lists the job, or was given it again', () => {
    const { clock, stops } = fixture();
    for (const id of ['posted', 'listed', 'unlisted']) stops.add('e', 'w', id);
    stops.due('e', 'w');
    stops.recordRunningJobs('e', 'w', ['listed', 'unlisted']);
    stops.remove('e', 'w', 'posted');
    stops.recordRunningJobs('e', 'w', ['listed', 'another']);
    clock.advance(3 * SECOND);
    assert.deepEqual(stops.due('e', 'w'), ['listed']);
  });

  test('is sent it even if it lists nothing yet: it was not sent before', () => {
    const { stops } = fixture();
    stops.add('e', 'w', 'j1');
    stops.recordRunningJobs('e', 'w', []);
    assert.deepEqual(stops.due('e', 'w'), ['j1']);
  });

  test('gets it again when it lists the job later: a blocked handler cannot have read the first one', () => {
    const { clock, stops } = fixture();
    stops.add('e', 'w', 'j1');
    assert.deepEqual(stops.due('e', 'w'), ['j1']);
    stops.recordRunningJobs('e', 'w', ['another']);
    clock.advance(30 * SECOND);
    stops.recordRunningJobs('e', 'w', ['j1']);
    assert.deepEqual(stops.due('e', 'w'), ['j1']);
    stops.recordRunningJobs('e', 'w', []);
    assert.equal(stops.size, 0);
  });

  test('that has polled again since it was sent, and does not list the job, does not hold it', () => {
    const { clock, stops } = fixture();
    stops.add('e', 'w', 'j1');
    stops.due('e', 'w');
    clock.advance(3 * SECOND);
    stops.due('e', 'w');
    stops.recordRunningJobs('e', 'w', []);
    assert.equal(stops.size, 0);
  });

  test('is sent it for as long as it lists the job', () => {
    const { clock, stops } = fixture();
    stops.add('e', 'w', 'j1');
    for (let time = 0; time < 200; time += 10) {
      clock.advance(10 * SECOND);
      stops.recordRunningJobs('e', 'w', ['j1']);
      stops.add('e', 'other', 'j2');
    }
    assert.deepEqual(stops.due('e', 'w'), ['j1']);
  });

  test('is sent nothing more after a minute', () => {
    const { clock, stops } = fixture();
    stops.add('e', 'w', 'j1');
    clock.advance(60 * SECOND);
    assert.deepEqual(stops.due('e', 'w'), ['j1']);
    clock.advance(3 * SECOND);
    assert.deepEqual(stops.due('e', 'w'), []);
    assert.equal(stops.size, 0);
  });

  test('that never polls leaves no entries behind', () => {
    const { clock, stops } = fixture();
    for (let time = 0; time < 1_000; time += 1) {
      stops.add('e', `w${time}`, 'j');
      clock.advance(SECOND);
    }
    assert.ok(stops.size <= 125, `${stops.size} workers are kept`);
  });
});

describe('a worker with a cancelled job', () => {
  /** It pings every ten seconds for this long, and lists these jobs. */
  function ping({ clock, stops }: ReturnType<typeof fixture>, seconds: number, ...jobs: string[]): void {
    for (let time = 0; time < seconds; time += 10) {
      clock.advance(10 * SECOND);
      stops.recordRunningJobs('e', 'w', jobs);
    }
  }

  test('ignores the cancellation if it still lists the job after a while, although it could not be sent', () => {
    const on = fixture();
    on.stops.add('e', 'w', 'j1');
    ping(on, 10, 'j1');
    assert.equal(on.stops.ignoresCancellation('e', 'w'), false);
    ping(on, 10, 'j1');
    assert.equal(on.stops.ignoresCancellation('e', 'w'), true);
    ping(on, 120, 'j1');
    assert.equal(on.stops.ignoresCancellation('e', 'w'), true);
  });

  test('does not ignore it if it never polls for cancellations but ends the job by itself', () => {
    const on = fixture();
    for (const job of ['posted', 'unlisted', 'never listed']) on.stops.add('e', 'w', job);
    ping(on, 10, 'posted', 'unlisted');
    on.stops.remove('e', 'w', 'posted');
    ping(on, 60, 'another');
    assert.equal(on.stops.ignoresCancellation('e', 'w'), false);
  });

  test('that is silent ignores it if this server sent it: otherwise it may talk to another server', () => {
    const { clock, heartbeats, stops } = fixture();
    for (const worker of ['told', 'untold', 'takes']) stops.add('e', worker, 'j1');
    for (const worker of ['told', 'takes']) stops.due('e', worker);
    clock.advance(16 * SECOND);
    heartbeats.recordTake('e', 'takes', true);
    assert.deepEqual(
      ['told', 'untold', 'takes'].map((worker) => stops.ignoresCancellation('e', worker)),
      [true, false, false],
    );
  });

  test('is stuck when its loop has not run for longer than a poll stays open', () => {
    const on = fixture();
    const { heartbeats, stops } = on;
    heartbeats.recordTake('e', 'w', true);
    stops.add('e', 'w', 'j1');
    ping(on, 20, 'j1');
    assert.equal(stops.isStuck('e', 'w'), false);
    ping(on, 20, 'j1');
    assert.equal(stops.isStuck('e', 'w'), true);
    heartbeats.recordTake('e', 'w', false);
    assert.deepEqual([stops.isStuck('e', 'w'), stops.ignoresCancellation('e', 'w')], [false, true]);
  });

  test('is not stuck while it polls for cancellations; polls that its channel makes for it prove nothing', async () => {
    const asks = async (departureOf: () => LightCancelSignal): Promise<boolean> => {
      const on = fixture();
      on.stops.add('e', 'w', 'j1');
      for (let times = 0; times < 4; times += 1) {
        await on.stops.waitForDue('e', 'w', 0, departureOf());
        ping(on, 10, 'j1');
      }
      return on.stops.isStuck('e', 'w');
    };
    const channel = new LightCancelSignal();
    assert.deepEqual([await asks(() => new LightCancelSignal()), await asks(() => channel)], [false, true]);
  });

  test('is not stuck where it holds an earlier job, which it may be busy with', () => {
    const on = fixture();
    const [earlier, later] = [1, 2].map((seq) => ({ seq, id: newJobId(seq, false), lease: null }));
    assert.ok(earlier !== undefined && later !== undefined);
    const isStuck = (stopped: typeof earlier, held: typeof earlier): boolean => {
      on.heartbeats.removeWorker('e', 'w');
      on.heartbeats.assignJobs('e', 'w', held);
      on.stops.add('e', 'w', stopped.id);
      ping(on, 40, stopped.id, held.id);
      const stuck = on.stops.isStuck('e', 'w');
      on.stops.remove('e', 'w', stopped.id);
      return stuck;
    };
    assert.deepEqual([isStuck(earlier, later), isStuck(later, earlier)], [true, false]);
  });
});
