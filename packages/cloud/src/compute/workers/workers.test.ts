import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LOG_RETENTION_MS } from '../../domain/limits.ts';
import type { InstanceEngine } from '../../engines/engine.ts';
import { ManualClock } from '../../support/clock.ts';
import { EventBus } from '../../support/event-bus.ts';
import { createLog } from '../../support/log.ts';
import type { WorkerDeps } from './worker-components.ts';
import { createWorkerReconciler } from './worker-policy.ts';
import { sampleWorker } from './worker.fixture.ts';
import { singleShard } from './worker-shards.ts';
import { Workers } from './workers.ts';

const log = createLog({ level: 'silent', format: 'json' });

test('the record of an ended worker is kept as long as its log', async () => {
  const clock = new ManualClock();
  const deleted = Promise.withResolvers<number>();
  const store = {
    deleteEndedWorkers: async (endedBefore: number) => {
      deleted.resolve(endedBefore);
      return [];
    },
    listActiveEndpoints: async () => [],
    listQueuedEndpoints: async () => [],
  };
  const reconciler = createWorkerReconciler({
    store,
    queue: {},
    engines: new Map(),
    events: new EventBus(),
    clock,
    log,
  } as unknown as WorkerDeps);
  await reconciler.start();
  assert.equal(await deleted.promise, clock.now() - LOG_RETENTION_MS);
  await reconciler.close();
});

test("heartbeats apply to queue workers; a load balancing worker keeps its health check's result", async () => {
  const store = {
    listLiveWorkers: async () => [
      sampleWorker('w', { endpointId: 'e', state: 'ready', handle: '{}', startedAt: 1, readyAt: 2 }),
    ],
    listActiveEndpoints: async () => [],
    listQueuedEndpoints: async () => [],
  };
  const engine = {
    list: async () => [{ id: 'w', status: 'running', startedAt: 1, labels: { kind: 'worker' } }],
    watch: () => () => undefined,
  } as unknown as InstanceEngine;
  const queue = {
    heartbeats: { statusOf: () => ({ busy: 0, worked: false, unhealthy: null }) },
    cancellations: { ignoresCancellation: () => false },
  };
  const deps = {
    store,
    queue,
    engines: new Map([['LOCAL-1', engine]]),
    events: new EventBus(),
    clock: new ManualClock(),
    log,
  } as unknown as WorkerDeps;
  const reconciler = createWorkerReconciler(deps);
  const workers = new Workers(singleShard(reconciler.policy.components), deps);
  await reconciler.start();
  const shown = (type: 'QUEUE' | 'LOAD_BALANCER'): unknown[] =>
    workers.list({ id: 'e', type }).map(({ busy, unhealthyReason }) => [busy, unhealthyReason]);
  const [worker] = workers.list({ id: 'e', type: 'LOAD_BALANCER' });
  assert.ok(worker !== undefined);
  worker.busy = true;
  worker.unhealthyReason = 'its health check fails';
  assert.deepEqual(shown('LOAD_BALANCER'), [[true, 'its health check fails']]);
  assert.deepEqual(shown('QUEUE'), [[false, null]]);
  await reconciler.close();
});
