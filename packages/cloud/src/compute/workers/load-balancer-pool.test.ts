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

describe('a worker that somebody insists on', () => {
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

  /** One that was let go and has not left. */
  function leaving(version = endpoint.version): { worker: TrackedWorker; leave: () => void } {
    const worker = registry.getOrCreate('e').add(sampleWorker('w', { state: 'leaving', version }));
    const left = Promise.withResolvers<void>();
    worker.draining = left.promise;
    const leave = (): void => {
      registry.removeWorker(worker);
      saved.set('w', { ...worker.record, state: 'ended', endedAt: 5 });
      left.resolve();
    };
    return { worker, leave };
  }

  test('is started again, and is there from then on', async () => {
    saved.set('w', sampleWorker('w', { state: 'ended', endedAt: 5, version: endpoint.version }));
    assert.deepEqual([await pool.resume('e', 'w'), pool.exists('e', 'w'), launched], [true, true, ['w']]);
  });

  test('is waited for where it is just leaving, and then started again', async () => {
    const { leave } = leaving();
    const resumed = pool.resume('e', 'w');
    await turn();
    assert.deepEqual(launched, []);
    leave();
    assert.deepEqual([await resumed, launched], [true, ['w']]);
  });

  test('does not come back in another version, nor where it was never there', async () => {
    leaving(endpoint.version - 1);
    assert.deepEqual(
      [await pool.resume('e', 'w'), await pool.resume('e', 'nobody'), launched],
      [false, false, []],
    );
  });
});
