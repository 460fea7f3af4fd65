import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { WorkerStore } from '../../store/worker-store.ts';
import { createLog } from '../../support/log.ts';
import { WorkerRegistry } from './worker-registry.ts';
import { sampleWorker } from './worker.fixture.ts';
import type { Worker } from '../../domain/endpoints/worker-record.ts';

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
