import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { WorkerStore } from '../../store/worker-store.ts';
import { createLog } from '../../support/log.ts';
import { WorkerRegistry } from './worker-registry.ts';
import { sampleWorker } from './worker.fixture.ts';
import type { Worker } from '../../domain/endpoints/worker-record.ts';
import type { TrackedWorker } from './tracked-worker.ts';

const log = createLog({ level: 'silent', format: 'json' });

test('a worker with the id of an earlier one is another worker', () => {
  const registry = new WorkerRegistry({} as WorkerStore, log);
  const earlier = registry.getOrCreate('e').add(sampleWorker('w'));
  assert.equal(registry.isTracked(earlier), true);
  registry.clear();
  assert.equal(registry.isTracked(earlier), false);
  const later = registry.getOrCreate('e').add(sampleWorker('w'));
  assert.equal(registry.isTracked(earlier), false);
  registry.removeWorker(earlier);
  assert.equal(registry.findWorker('e', 'w'), later);
  registry.removeWorker(later);
  assert.equal(registry.findWorker('e', 'w'), undefined);
});

test('a worker is found by its instance for as long as it is tracked', () => {
  const registry = new WorkerRegistry({} as WorkerStore, log);
  const [one, two, three, four] = ['1', '2', '3', '4'].map((id) =>
    registry.getOrCreate(`e${id}`).add(sampleWorker(id, { endpointId: `e${id}` })),
  );
  const found = (): unknown[] => ['1', '2', '3', '4'].map((id) => registry.findWorkerByInstance(id));
  assert.deepEqual(found(), [one, two, three, four]);
  registry.removeWorker(one as TrackedWorker);
  registry.removeEndpoint('e2');
  assert.deepEqual(found(), [undefined, undefined, three, four]);
  registry.clear();
  assert.deepEqual(found(), [undefined, undefined, undefined, undefined]);
});

test('a worker is found by its instance without a look at every endpoint', () => {
  const registry = new WorkerRegistry({} as WorkerStore, log);
  let looks = 0;
  for (let endpoint = 0; endpoint < 100; endpoint += 1) {
    const workerSet = registry.getOrCreate(`e${endpoint}`);
    workerSet.add(sampleWorker(`w${endpoint}`, { endpointId: `e${endpoint}` }));
    const { workers } = workerSet;
    Object.defineProperty(workerSet, 'workers', {
      get: () => {
        looks += 1;
        return workers;
      },
    });
  }
  assert.equal(registry.findWorkerByInstance('w99')?.record.endpointId, 'e99');
  assert.equal(registry.findWorkerByInstance('absent'), undefined);
  assert.ok(looks <= 2, `${looks} looks`);
});

test('waiting requests are woken when a worker is ready, even if that cannot be stored', async () => {
  const saved: Worker[] = [];
  const store = {
    saveWorker: async (worker: Worker) => {
      saved.push(worker);
      throw new Error('the disk is full');
    },
  } as unknown as WorkerStore;
  const registry = new WorkerRegistry(store, log);
  const worker = registry.getOrCreate('e').add(sampleWorker('w'));
  const { changed } = registry.changes.waitForNext('e', 60_000);
  registry.markReady(worker, 7);
  await changed;
  assert.deepEqual([worker.record.state, worker.record.readyAt, saved.length], ['ready', 7, 1]);
  assert.equal(registry.findWorkerByInstance('w'), worker);
});
