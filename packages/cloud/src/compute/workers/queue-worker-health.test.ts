import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { JobReaper } from '../../queue/job-reaper.ts';
import type { JobReaperDeps } from '../../queue/job-reaper.ts';
import { WORKER_TIMEOUT_MS } from '../../queue/connected-worker.ts';
import { WorkerHeartbeats } from '../../queue/worker-heartbeats.ts';
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

describe('a queue worker', () => {
  let clock: ManualClock;
  let heartbeats: WorkerHeartbeats;
  let cancellations: CancellationRegistry;
  /** When another server received a heartbeat of it. */
  let heartbeatElsewhereAt: number;
  /** How many jobs it had then. */
  let busyElsewhere: number;
  /** Whether it holds a job, as the store says. */
  let holdsJob: boolean;
  let drained: (string | null)[];
  let worker: TrackedWorker;
  let health: QueueWorkerHealth;

  beforeEach(() => {
    clock = new ManualClock();
    heartbeats = new WorkerHeartbeats(clock);
    cancellations = new CancellationRegistry(clock, heartbeats);
    heartbeatElsewhereAt = -WORKER_TIMEOUT_MS;
    busyElsewhere = 0;
    holdsJob = false;
    drained = [];
    const store = {
      workers: async (_endpoint: string, seenSince: number) =>
        heartbeatElsewhereAt >= seenSince
          ? [
              {
                endpointId: 'e',
                workerId: 'w',
                seenAt: heartbeatElsewhereAt,
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
      cancellations,
    } as unknown as JobQueue;
    const registry = new WorkerRegistry(
      { saveWorker: async () => undefined } as unknown as WorkerStore,
      createLog({ level: 'silent', format: 'json' }),
    );
    const termination = {
      drain: async (one: TrackedWorker, reason: string | null) => {
        if (one.record.state === 'leaving') return;
        one.record = { ...one.record, state: 'leaving' };
        drained.push(reason);
      },
    } as unknown as WorkerTermination;
    worker = registry.getOrCreate('e').add(sampleWorker('w', { endpointId: 'e' }));
    health = new QueueWorkerHealth({ registry, termination, queue });
  });

  /** Checks it as often as the reconciler does. */
  async function pass(seconds: number, meanwhile: () => void = () => undefined): Promise<void> {
    for (let checks = 0; checks < 2 * seconds; checks += 1) {
      clock.advance(SECOND / 2);
      meanwhile();
      await health.check(worker, clock.now());
    }
  }

  const ready = (): Promise<void> => pass(1, () => heartbeats.recordHeartbeat('e', 'w'));

  test('without heartbeats and jobs is drained, with the reason', async () => {
    await ready();
    assert.equal(worker.record.state, 'ready');
    await pass(29);
    assert.deepEqual([drained, worker.unhealthyReason], [[], null]);
    await pass(15);
    assert.deepEqual(drained, ['it has not been heard of for 30 s']);
    assert.equal(worker.unhealthyReason, 'it has not been heard of for 30 s');
  });

  test('is connected since its first heartbeat, and has its first job since that was given to it', async () => {
    const connectedAt = clock.now();
    heartbeats.recordHeartbeat('e', 'w');
    clock.advance(SECOND);
    const firstJobAt = clock.now();
    heartbeats.assignJobs('e', 'w', { seq: 2, id: 'first', lease: null });
    await pass(2);
    heartbeats.assignJobs('e', 'w', { seq: 3, id: 'second', lease: null });
    await pass(2);
    assert.deepEqual([worker.record.readyAt, worker.record.firstJobAt], [connectedAt, firstJobAt]);
  });

  test('without a first heartbeat is starting, and is not drained', async () => {
    await pass(120);
    assert.deepEqual([drained, worker.record.state], [[], 'starting']);
  });

  test('is kept while it sends heartbeats or has a request open', async () => {
    await pass(60, () => heartbeats.recordHeartbeat('e', 'w'));
    const finish = heartbeats.requestStarted('e', 'w');
    await pass(60);
    finish();
    assert.deepEqual(drained, []);
  });

  test('whose heartbeats go to another server is ready, busy and idle in the same way', async () => {
    const beat = (): number => (heartbeatElsewhereAt = clock.now());
    await pass(6, beat);
    assert.deepEqual([worker.record.state, worker.busy], ['ready', false]);
    assert.notEqual(worker.idleSince, null);
    busyElsewhere = 1;
    await pass(6, beat);
    assert.deepEqual([worker.busy, worker.idleSince], [true, null]);
    assert.deepEqual(drained, []);
  });

  test('is kept while another server receives its heartbeats', async () => {
    await ready();
    await pass(120, () => (heartbeatElsewhereAt = clock.now()));
    assert.deepEqual(drained, []);
    await pass(45);
    assert.equal(drained.length, 1);
  });

  test('is kept while it holds a job: a handler that never yields prevents heartbeats', async () => {
    await ready();
    holdsJob = true;
    await pass(120);
    assert.deepEqual(drained, []);
    holdsJob = false;
    await pass(15);
    assert.equal(drained.length, 1);
  });

  test('that goes on with a cancelled job is drained, even if the cancellation did not reach it', async () => {
    await ready();
    cancellations.add('e', 'w', 'stopped');
    const pings = (): void => {
      heartbeats.recordRunningJobs('e', 'w', ['stopped']);
      cancellations.recordRunningJobs('e', 'w', ['stopped']);
    };
    await pass(14, pings);
    assert.deepEqual(drained, []);
    await pass(3, pings);
    assert.deepEqual(drained, ['it went on with a job that was cancelled or had run out of time']);
  });

  test('that goes on with a cancelled job may finish its other jobs as long as it sends takes', async () => {
    await ready();
    cancellations.add('e', 'w', 'stopped');
    heartbeats.assignJobs('e', 'w', { seq: 2, id: 'other', lease: null });
    const pings = (): void => cancellations.recordRunningJobs('e', 'w', ['stopped', 'other']);
    await pass(60, () => {
      heartbeats.recordTake('e', 'w', false);
      pings();
    });
    assert.deepEqual(drained, []);
    cancellations.add('e', 'w', 'stopped as well');
    const blocked = (): void => {
      heartbeats.recordHeartbeat('e', 'w');
      cancellations.recordRunningJobs('e', 'w', ['stopped', 'stopped as well', 'other']);
    };
    await pass(29, blocked);
    assert.deepEqual(drained, []);
    await pass(3, blocked);
    assert.equal(drained.length, 1);
  });

  test('gets the full timeout after this server was suspended or has just started', async () => {
    await ready();
    clock.advance(3600 * SECOND);
    await health.check(worker, clock.now());
    heartbeats.onProcessResumed();
    await pass(29);
    heartbeats.recordHeartbeat('e', 'w');
    await pass(29);
    assert.deepEqual(drained, []);
  });
});
