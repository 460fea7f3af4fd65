import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceEngine } from '../../engines/engine.ts';
import { ManualClock } from '../../support/clock.ts';
import { createLog } from '../../support/log.ts';
import { WorkerReconciler } from './worker-reconciler.ts';
import type { WorkerReconcilerDeps } from './worker-reconciler.ts';
import { sampleWorker } from './worker.fixture.ts';
import { LOG_RETENTION_MS } from '../../domain/limits.ts';

const log = createLog({ level: 'silent', format: 'json' });

test('a worker that ended is remembered as long as its log can be read', async () => {
  const clock = new ManualClock();
  const forgotten = Promise.withResolvers<number>();
  const store = {
    deleteEndedWorkers: async (endedBefore: number) => {
      forgotten.resolve(endedBefore);
      return [];
    },
  };
  const fleet = new WorkerReconciler({
    store,
    queue: {},
    engines: new Map(),
    clock,
    log,
  } as unknown as WorkerReconcilerDeps);
  await fleet.start();
  assert.equal(await forgotten.promise, clock.now() - LOG_RETENTION_MS);
  await fleet.close();
});

test('what the queue heard of a worker counts for a queue alone: of a load balanced one it only knows that it shall get no jobs', async () => {
  const store = {
    listLiveWorkers: async () => [
      sampleWorker('w', { endpointId: 'e', state: 'ready', handle: '{}', startedAt: 1, readyAt: 2 }),
    ],
    listActiveEndpoints: async () => [],
  };
  const engine = {
    list: async () => [{ id: 'w', status: 'running', startedAt: 1, labels: {} }],
    watch: () => () => undefined,
    close: async () => undefined,
  } as unknown as InstanceEngine;
  const queue = {
    heartbeats: { statusOf: () => ({ busy: 0, worked: false, unhealthy: null }) },
    cancellations: { ignoresCancellation: () => false },
  };
  const fleet = new WorkerReconciler({
    store,
    queue,
    engines: new Map([['LOCAL-1', engine]]),
    clock: new ManualClock(),
    log,
  } as unknown as WorkerReconcilerDeps);
  await fleet.start();
  const told = (type: 'QUEUE' | 'LOAD_BALANCER'): unknown[] =>
    fleet.workers({ id: 'e', type }).map(({ busy, unhealthy }) => [busy, unhealthy]);
  Object.assign(fleet.workers({ id: 'e', type: 'LOAD_BALANCER' })[0] ?? {}, {
    busy: true,
    unhealthy: 'its health check fails',
  });
  assert.deepEqual(told('LOAD_BALANCER'), [[true, 'its health check fails']]);
  assert.deepEqual(told('QUEUE'), [[false, null]]);
  await fleet.close();
});
