import assert from 'node:assert/strict';
import { beforeEach, describe, mock, test } from 'node:test';
import type { WorkerStore } from '../../store/worker-store.ts';
import { createLog } from '../../support/log.ts';
import { ReconcileQueue } from '../reconcile-queue.ts';
import { ScaleUpTrigger } from './scale-up-trigger.ts';
import { WorkerRegistry } from './worker-registry.ts';
import { sampleWorker } from './worker.fixture.ts';

const LONGEST_PAUSE_MS = 500;

describe('reconciliations of an endpoint with queued jobs', () => {
  let runs: number;
  let registry: WorkerRegistry;
  let early: ScaleUpTrigger;

  beforeEach(() => {
    mock.timers.reset();
    mock.timers.enable({ apis: ['setTimeout'] });
    runs = 0;
    registry = new WorkerRegistry({} as WorkerStore, createLog({ level: 'silent', format: 'json' }));
    const reconcileQueue = new ReconcileQueue({
      reconcile: async () => void (runs += 1),
      isEnabled: () => true,
      onError: (error) => assert.fail(String(error)),
    });
    early = new ScaleUpTrigger(registry, reconcileQueue, LONGEST_PAUSE_MS);
  });

  /** Lets the current reconciliation end, as it does between two timers. */
  async function pass(milliseconds: number): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    mock.timers.tick(milliseconds);
    await new Promise((resolve) => setImmediate(resolve));
  }

  test('happen at once for the first job, and once for all that follow shortly', async () => {
    for (let job = 0; job < 100; job += 1) early.onJobQueued('e');
    assert.equal(runs, 1);
    await pass(10);
    assert.equal(runs, 2);
    await pass(1_000);
    assert.equal(runs, 2);
  });

  test('become rarer while more jobs are queued and no worker starts', async () => {
    const at: number[] = [];
    for (let now = 0; now < 2_000; now += 5) {
      early.onJobQueued('e');
      if (now === 0) at.push(now);
      const before = runs;
      await pass(5);
      if (runs > before) at.push(now + 5);
    }
    assert.deepEqual(at, [0, 10, 30, 70, 150, 310, 630, 1_130, 1_630]);
  });

  test('do not happen if a worker is ready or starting', async () => {
    const worker = registry.getOrCreate('e').add(sampleWorker('w', { endpointId: 'e' }));
    early.onJobQueued('e');
    assert.equal(runs, 0);
    registry.removeWorker(worker);
    early.onJobQueued('e');
    assert.equal(runs, 1);
    early.onJobQueued('e');
    registry.getOrCreate('e').add(sampleWorker('v', { endpointId: 'e' }));
    await pass(10);
    assert.equal(runs, 1);
  });
});
