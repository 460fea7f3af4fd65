import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import type { InstanceEngine } from '../../engines/engine.ts';
import { CancellationRegistry } from '../../queue/cancellation-registry.ts';
import { WORKER_TIMEOUT_MS } from '../../queue/connected-worker.ts';
import { WorkerHeartbeats } from '../../queue/worker-heartbeats.ts';
import { sampleEndpoint } from '../../resources/endpoints/endpoint.fixture.ts';
import { ManualClock } from '../../support/clock.ts';
import { EventBus } from '../../support/event-bus.ts';
import { createLog } from '../../support/log.ts';
import type { CloudEvents } from '../../domain/events.ts';
import {
  HEALTH_CHECK_INTERVAL_MS,
  IDLE_CHECK_INTERVAL_MS,
  IDLE_CHECKS_PER_TICK,
} from '../reconcile-settings.ts';
import type { WorkerDeps } from './worker-components.ts';
import { createWorkerReconciler } from './worker-policy.ts';
import { sampleWorker } from './worker.fixture.ts';

describe('an endpoint at rest', () => {
  let clock: ManualClock;
  let heartbeats: WorkerHeartbeats;
  let events: EventBus<CloudEvents>;
  let policy: ReturnType<typeof createWorkerReconciler>['policy'];
  let waiting: number;
  /** Called while the load is read. */
  let onCount: () => void;
  let queued: string[];

  beforeEach(async () => {
    clock = new ManualClock();
    heartbeats = new WorkerHeartbeats(clock);
    events = new EventBus();
    waiting = 0;
    onCount = () => undefined;
    queued = [];
    const deps = {
      store: {
        listActiveEndpoints: async () => ['e'],
        listLiveWorkers: async () => [],
        listQueuedEndpoints: async () => queued,
        saveWorker: async () => undefined,
      },
      queue: {
        heartbeats,
        cancellations: new CancellationRegistry(clock, heartbeats),
        reaper: { isUnresponsive: async () => false },
        workers: async () => [],
        countWaiting: async () => ({ waiting, late: 0 }),
        counts: async () => {
          onCount();
          return { inQueue: waiting, inProgress: 0 };
        },
      },
      engines: new Map(),
      events,
      endpoint: async () => ({ ...sampleEndpoint, id: 'e', workersMin: 1, workersMax: 2 }),
      clock,
      log: createLog({ level: 'silent', format: 'json' }),
    } as unknown as WorkerDeps;
    ({ policy } = createWorkerReconciler(deps));
    policy.start();
    await keepResting('e', 'w');
  });

  /** An endpoint with one idle worker. */
  async function keepResting(id: string, workerId = `w-${id}`): Promise<void> {
    const record = sampleWorker(workerId, { endpointId: id, state: 'ready', readyAt: 1 });
    policy.components.registry.getOrCreate(id).add({ ...record, version: sampleEndpoint.version });
    heartbeats.recordHeartbeat(id, workerId);
    await policy.reconcile(id);
  }

  const due = async (): Promise<string[]> => [...(await policy.listDue(clock.now()))];
  const unreconciled = async (): Promise<string[]> => [...(await policy.listUnreconciled())];

  test('is left alone', async () => {
    assert.deepEqual([await due(), await unreconciled()], [[], []]);
    clock.advance(HEALTH_CHECK_INTERVAL_MS + 1);
    assert.deepEqual(await due(), []);
  });

  test('is due when a job is queued, also while its load is read', async () => {
    events.publish('jobs.queued', { endpointId: 'e' });
    assert.deepEqual(await due(), ['e']);
    onCount = () => events.publish('jobs.queued', { endpointId: 'e' });
    await policy.reconcile('e');
    assert.deepEqual(await due(), ['e']);
    onCount = () => undefined;
    await policy.reconcile('e');
    assert.deepEqual(await due(), []);
  });

  test('is due while jobs wait, also where the event was lost', async () => {
    queued = ['e'];
    assert.deepEqual([await due(), await unreconciled()], [[], ['e']]);
    waiting = 1;
    await policy.reconcile('e');
    assert.deepEqual(await due(), ['e']);
  });

  test('is due when a worker is silent, and when its owner changed it', async () => {
    clock.advance(WORKER_TIMEOUT_MS - HEALTH_CHECK_INTERVAL_MS);
    await policy.reconcile('e');
    clock.advance(HEALTH_CHECK_INTERVAL_MS - 1);
    assert.deepEqual(await due(), []);
    clock.advance(1);
    assert.deepEqual(await due(), ['e']);
    heartbeats.recordHeartbeat('e', 'w');
    assert.deepEqual(await due(), []);
    policy.onEndpointChanged('e');
    assert.deepEqual(await due(), ['e']);
  });

  test('is due when the container of a worker runs, and not while its engine starts it', async () => {
    const [worker] = policy.components.registry.workersOf('e');
    assert.ok(worker !== undefined);
    worker.record = { ...worker.record, id: 'other', state: 'starting', readyAt: null };
    clock.advance(HEALTH_CHECK_INTERVAL_MS + 1);
    assert.deepEqual(await due(), []);
    worker.runningSince = clock.now();
    assert.deepEqual(await due(), ['e']);
  });

  test('is looked at again after a while', async () => {
    clock.advance(IDLE_CHECK_INTERVAL_MS);
    heartbeats.recordHeartbeat('e', 'w');
    assert.deepEqual(await due(), ['e']);
    await policy.reconcile('e');
    assert.deepEqual(await due(), []);
    clock.advance(-IDLE_CHECK_INTERVAL_MS);
    assert.deepEqual(await due(), ['e']);
  });

  test('of thousands, does not keep one with work waiting when they are looked at again', async () => {
    const others = Array.from({ length: 2 * IDLE_CHECKS_PER_TICK }, (_, index) => `other${index}`);
    for (const id of others) await keepResting(id);
    await keepResting('last');
    clock.advance(IDLE_CHECK_INTERVAL_MS);
    heartbeats.recordHeartbeat('e', 'w');
    for (const id of ['last', ...others]) heartbeats.recordHeartbeat(id, `w-${id}`);
    events.publish('jobs.queued', { endpointId: 'last' });
    const first = await due();
    assert.deepEqual(first, ['last', 'e', ...others.slice(0, IDLE_CHECKS_PER_TICK - 1)]);
    assert.deepEqual(await unreconciled(), []);
    for (const id of first) await policy.reconcile(id);
    assert.deepEqual(await due(), others.slice(IDLE_CHECKS_PER_TICK - 1, 2 * IDLE_CHECKS_PER_TICK - 1));
  });

  test('is not reconciled whenever its engine was compared with the records', async () => {
    const adopt = async (): Promise<string[]> => [
      ...(await policy.adopt({} as InstanceEngine, new Map(), () => true)),
    ];
    assert.deepEqual(await adopt(), []);
    events.publish('jobs.queued', { endpointId: 'e' });
    assert.deepEqual(await adopt(), ['e']);
  });
});
