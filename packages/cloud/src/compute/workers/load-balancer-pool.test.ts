import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { sampleEndpoint } from '../../resources/endpoints/endpoint.fixture.ts';
import type { WorkerStore } from '../../store/worker-store.ts';
import type { Endpoint } from '../../domain/records.ts';
import { ManualClock } from '../../support/clock.ts';
import { createLog } from '../../support/log.ts';
import { LoadBalancerPool } from './load-balancer-pool.ts';
import type { LoadBalancerPoolDeps } from './load-balancer-pool.ts';
import type { TrackedWorker } from './tracked-worker.ts';
import { WorkerRegistry } from './worker-registry.ts';
import { sampleWorker } from './worker.fixture.ts';
import type { Worker } from '../../domain/endpoints/worker-record.ts';
import { NO_CAPACITY } from '../../domain/placement/engine-capacity.ts';

const endpoint: Endpoint = {
  ...sampleEndpoint,
  id: 'e',
  type: 'LOAD_BALANCER',
  compute: 'CPU',
  gpuCount: 0,
  workersMax: 1,
};

describe('a worker that is requested by its id', () => {
  let registry: WorkerRegistry;
  let saved: Map<string, Worker>;
  let launched: string[];
  let pool: LoadBalancerPool;

  beforeEach(() => {
    saved = new Map();
    launched = [];
    const store = {
      saveWorker: async (worker: Worker) => void saved.set(worker.id, worker),
      findWorker: async (_endpoint: string, id: string) => saved.get(id),
    } as unknown as WorkerStore;
    registry = new WorkerRegistry(store, createLog({ level: 'silent', format: 'json' }));
    const launcher = {
      launch: (_endpoint: Endpoint, _place: unknown, id: string) => {
        launched.push(id);
        registry.getOrCreate('e').add(sampleWorker(id));
      },
    };
    pool = new LoadBalancerPool({
      registry,
      store,
      launcher,
      clock: new ManualClock(),
      reconcileQueue: { enqueue: () => undefined },
      termination: { waitUntilDone: async () => undefined },
      removals: { isRemoving: () => false },
      candidates: {
        find: async () => [
          {
            dataCenterId: 'LOCAL-1',
            images: 'folders',
            capacity: NO_CAPACITY,
            imageProblem: undefined,
            volumeId: undefined,
          },
        ],
      },
      endpoint: async () => endpoint,
    } as unknown as LoadBalancerPoolDeps);
  });

  /** A worker that is being drained. */
  function draining(version = endpoint.version): { worker: TrackedWorker; finish: () => void } {
    const worker = registry.getOrCreate('e').add(sampleWorker('w', { state: 'leaving', version }));
    const drained = Promise.withResolvers<void>();
    worker.draining = drained.promise;
    const finish = (): void => {
      registry.removeWorker(worker);
      saved.set('w', { ...worker.record, state: 'ended', endedAt: 5 });
      drained.resolve();
    };
    return { worker, finish };
  }

  test('is started again after it was scaled down', async () => {
    saved.set('w', sampleWorker('w', { state: 'ended', endedAt: 5, version: endpoint.version }));
    assert.deepEqual([await pool.resume('e', 'w'), pool.exists('e', 'w'), launched], [true, true, ['w']]);
  });

  test('is started again when its draining has ended', async () => {
    const { finish } = draining();
    const resumed = pool.resume('e', 'w');
    await turn();
    assert.deepEqual(launched, []);
    finish();
    assert.deepEqual([await resumed, launched], [true, ['w']]);
  });

  test('is not started again for a newer version of the endpoint, nor if it never existed', async () => {
    draining(endpoint.version - 1);
    assert.deepEqual(
      [await pool.resume('e', 'w'), await pool.resume('e', 'nobody'), launched],
      [false, false, []],
    );
  });
});
