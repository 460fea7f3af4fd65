import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { JobReaper } from '../../queue/job-reaper.ts';
import type { JobReaperDeps } from '../../queue/job-reaper.ts';
import { WorkerHeartbeats, WORKER_TIMEOUT_MS } from '../../queue/worker-heartbeats.ts';
import type { JobQueue } from '../../queue/job-queue.ts';
import { CancellationRegistry } from '../../queue/cancellation-registry.ts';
import type { WorkerStore } from '../../store/worker-store.ts';
import { ManualClock } from '../../support/clock.ts';
import { createLog } from '../../support/log.ts';
import type { WorkerTermination } from './worker-termination.ts';
import type { TrackedWorker } from './tracked-worker.ts';
import { QueueWorkerHealth } from './queue-worker-health.ts';
import { WorkerRegistry } from './worker-registry.ts';
import { sampleWorker } from './worker.fixture.ts';

const SECOND = 1_000;

describe('a worker of a queue', () => {
  let clock: ManualClock;
  let heartbeats: WorkerHeartbeats;
  let stops: CancellationRegistry;
  /** The time at which another server heard of it. */
  let heardElsewhereAt: number;
  /** How many jobs it had then. */
  let busyElsewhere: number;
  /** It holds a job, as the store knows. */
  let holdsJob: boolean;
  let dismissed: (string | null)[];
  let worker: TrackedWorker;
  let health: QueueWorkerHealth;

  beforeEach(() => {
    clock = new ManualClock();
    heartbeats = new WorkerHeartbeats(clock);
    stops = new CancellationRegistry(clock, heartbeats);
    heardElsewhereAt = -WORKER_TIMEOUT_MS;
    busyElsewhere = 0;
    holdsJob = false;
    dismissed = [];
    const store = {
      workers: async (_endpoint: string, seenSince: number) =>
        heardElsewhereAt >= seenSince
          ? [
              {
                endpointId: 'e',
                workerId: 'w',
                seenAt: heardElsewhereAt,
                busy: busyElsewhere,
                unhealthy: null,
              },
            ]
          : [],
      listRunning: async () => (holdsJob ? [{ workerId: 'w' }] : []),
    };
    const reaper = new JobReaper({ store, clock, heartbeats } as unknown as JobReaperDeps);
    const queue = {
      heartbeats,
      reaper,
      workers: (endpointId: string) => store.workers(endpointId, clock.now() - WORKER_TIMEOUT_MS),
      cancellations: stops,
    } as unknown as JobQueue;
    const registry = new WorkerRegistry(
      { saveWorker: async () => undefined } as unknown as WorkerStore,
      createLog({ level: 'silent', format: 'json' }),
    );
    const termination = {
      drain: async (one: TrackedWorker, reason: string | null) => {
        if (one.record.state === 'leaving') return;
        one.record = { ...one.record, state: 'leaving' };
        dismissed.push(reason);
      },
    } as unknown as WorkerTermination;
    worker = registry.getOrCreate('e').add(sampleWorker('w', { endpointId: 'e' }));
    health = new QueueWorkerHealth({ registry: registry, termination: termination, queue });
  });

  /** Looks at it as often as the workerSet does. */
  async function pass(seconds: number, meanwhile: () => void = () => undefined): Promise<void> {
    for (let looks = 0; looks < 2 * seconds; looks += 1) {
      clock.advance(SECOND / 2);
      meanwhile();
      await health.check(worker, clock.now());
    }
  }

  const ready = (): Promise<void> => pass(1, () => heartbeats.recordHeartbeat('e', 'w'));

  test('that falls silent with nothing to do is let go, and says why', async () => {
    await ready();
    assert.equal(worker.record.state, 'ready');
    await pass(29);
    assert.deepEqual([dismissed, worker.unhealthyReason], [[], null]);
    await pass(15);
    assert.deepEqual(dismissed, ['it has not been heard of for 30 s']);
    assert.equal(worker.unhealthyReason, 'it has not been heard of for 30 s');
  });

  test('that has not spoken yet is starting, and is not judged by its silence', async () => {
    await pass(120);
    assert.deepEqual([dismissed, worker.record.state], [[], 'starting']);
  });

  test('stays as long as it is heard of, also where it only waits for an answer', async () => {
    await pass(60, () => heartbeats.recordHeartbeat('e', 'w'));
    const leave = heartbeats.requestStarted('e', 'w');
    await pass(60);
    leave();
    assert.deepEqual(dismissed, []);
  });

  test('that speaks to another server alone is ready, busy and idle all the same', async () => {
    const hears = (): number => (heardElsewhereAt = clock.now());
    await pass(6, hears);
    assert.deepEqual([worker.record.state, worker.busy], ['ready', false]);
    assert.notEqual(worker.idleSince, null);
    busyElsewhere = 1;
    await pass(6, hears);
    assert.deepEqual([worker.busy, worker.idleSince], [true, null]);
    assert.deepEqual(dismissed, []);
  });

  test('stays where another server hears of it', async () => {
    await ready();
    await pass(120, () => (heardElsewhereAt = clock.now()));
    assert.deepEqual(dismissed, []);
    await pass(45);
    assert.equal(dismissed.length, 1);
  });

  test('stays while it holds a job: a handler that never yields keeps it from speaking', async () => {
    await ready();
    holdsJob = true;
    await pass(120);
    assert.deepEqual(dismissed, []);
    holdsJob = false;
    await pass(15);
    assert.equal(dismissed.length, 1);
  });

  test('that goes on with a stopped job is let go, also where it could not be told', async () => {
    await ready();
    stops.add('e', 'w', 'stopped');
    const pings = (): void => {
      heartbeats.recordRunningJobs('e', 'w', ['stopped']);
      stops.recordRunningJobs('e', 'w', ['stopped']);
    };
    await pass(14, pings);
    assert.deepEqual(dismissed, []);
    await pass(3, pings);
    assert.deepEqual(dismissed, ['it went on with a job that was cancelled or had run out of time']);
  });

  test('that goes on with a stopped job and has others is left to finish them as long as it asks for something, and no longer', async () => {
    await ready();
    stops.add('e', 'w', 'stopped');
    heartbeats.assignJobs('e', 'w', { seq: 2, id: 'other', lease: null });
    const pings = (): void => stops.recordRunningJobs('e', 'w', ['stopped', 'other']);
    await pass(60, () => {
      heartbeats.recordTake('e', 'w', false);
      pings();
    });
    assert.deepEqual(dismissed, []);
    stops.add('e', 'w', 'stopped as well');
    const blocked = (): void => {
      heartbeats.recordHeartbeat('e', 'w');
      stops.recordRunningJobs('e', 'w', ['stopped', 'stopped as well', 'other']);
    };
    await pass(29, blocked);
    assert.deepEqual(dismissed, []);
    await pass(3, blocked);
    assert.equal(dismissed.length, 1);
  });

  test('has its time after this server itself was away, or has just started', async () => {
    await ready();
    clock.advance(3600 * SECOND);
    await health.check(worker, clock.now());
    heartbeats.onProcessResumed();
    await pass(29);
    heartbeats.recordHeartbeat('e', 'w');
    await pass(29);
    assert.deepEqual(dismissed, []);
  });
});
