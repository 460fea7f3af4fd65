import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InstanceEngine } from '../../engines/engine.ts';
import type { JobQueue } from '../../queue/job-queue.ts';
import type { WorkerStore } from '../../store/worker-store.ts';
import { ManualClock } from '../../support/clock.ts';
import { createLog } from '../../support/log.ts';
import { ReconcileQueue } from '../reconcile-queue.ts';
import { WorkerTermination } from './worker-termination.ts';
import { EndpointRemovals } from './endpoint-removals.ts';
import { WorkerRegistry } from './worker-registry.ts';
import { sampleWorker } from './worker.fixture.ts';
import type { Worker } from '../../domain/endpoints/worker-record.ts';

test('an endpoint is removed after the instance of its last worker, with the logs of all workers', async () => {
  const steps: string[] = [];
  const removed = Promise.withResolvers<void>();
  const log = createLog({ level: 'silent', format: 'json' });
  const ended = [sampleWorker('earlier', { endedAt: 2 })];
  const store = {
    saveWorker: async (worker: Worker) => void ended.push(worker),
    listEndedWorkers: async () => ended,
    removeWorkers: async () => void steps.push('records removed'),
  } as unknown as WorkerStore;
  const engine = {
    remove: () => removed.promise.then(() => void steps.push('instance removed')),
    deleteLog: async (id: string) => void steps.push(`log of ${id} deleted`),
  } as unknown as InstanceEngine;
  const queue = {
    heartbeats: { removeWorker: () => undefined },
    reaper: { workerGone: async () => undefined },
  } as unknown as JobQueue;
  const reconcileQueue = new ReconcileQueue({
    reconcile: async () => undefined,
    isEnabled: () => true,
    onError: (error) => assert.fail(String(error)),
  });
  const registry = new WorkerRegistry(store, log);
  const deps = {
    registry,
    reconcileQueue,
    queue,
    engines: new Map([['LOCAL-1', engine]]),
    store,
    isLeading: () => true,
    clock: new ManualClock(),
    log,
  };
  const termination = new WorkerTermination({ ...deps, inFlight: () => 0 });
  const ending = termination.handleExit(
    registry.getOrCreate('e').add(sampleWorker('w', { state: 'leaving' })),
    {
      exitCode: 0,
      reason: 'it ended',
    },
  );
  assert.deepEqual(registry.workersOf('e'), []);
  const removing = new EndpointRemovals({ ...deps, termination }).remove('e');
  await new Promise((resolve) => setImmediate(resolve));
  removed.resolve();
  await Promise.all([ending, removing]);
  assert.deepEqual(steps, [
    'instance removed',
    'log of earlier deleted',
    'log of w deleted',
    'records removed',
  ]);
});
