import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import type { InstanceEngine } from '../../engines/engine.ts';
import type { JobQueue } from '../../queue/job-queue.ts';
import type { WorkerStore } from '../../store/worker-store.ts';
import { ManualClock } from '../../support/clock.ts';
import { createLog } from '../../support/log.ts';
import { ReconcileQueue } from '../reconcile-queue.ts';
import { WorkerTermination } from './worker-termination.ts';
import type { TrackedWorker } from './tracked-worker.ts';
import { WorkerRegistry } from './worker-registry.ts';
import { sampleWorker } from './worker.fixture.ts';

describe('a worker that leaves', () => {
  let steps: string[];
  let requests: number;
  /** It was given jobs. */
  let jobs: boolean;
  /** So many of them it has. */
  let busy: number;
  /** A job that was stopped keeps it from the others. */
  let stuck: boolean;
  /** What its own check said. */
  let unhealthy: string | null;
  /** What happens while it is being stopped. */
  let onStop: () => Promise<void>;
  let removed: PromiseWithResolvers<void>;
  let registry: WorkerRegistry;
  let termination: WorkerTermination;
  let worker: TrackedWorker;

  beforeEach(() => {
    steps = [];
    requests = 0;
    jobs = false;
    busy = 0;
    stuck = false;
    unhealthy = null;
    removed = Promise.withResolvers<void>();
    const store = {
      saveWorker: async ({ state }: { state: string }) => void steps.push(`saved as ${state}`),
    } as unknown as WorkerStore;
    onStop = async () => undefined;
    const engine = {
      stop: async () => {
        steps.push('stopped');
        await onStop();
      },
      remove: () => {
        steps.push('removing');
        return removed.promise;
      },
      async *logs() {
        yield { ts: 1, seq: 1, source: 'container', line: 'Error: no model' };
      },
    } as unknown as InstanceEngine;
    const heartbeats = { statusOf: () => ({ busy, worked: jobs, unhealthy }), removeWorker: () => undefined };
    const queue = {
      heartbeats,
      cancellations: { isStuck: () => stuck },
      drainWorker: () => void steps.push('dismissed'),
      reaper: {
        workerGone: async (_endpoint: string, _worker: string, reason: string) => void steps.push(reason),
      },
    } as unknown as JobQueue;
    const log = createLog({ level: 'silent', format: 'json' });
    const reconcileQueue = new ReconcileQueue({
      reconcile: async () => void steps.push('looked'),
      isEnabled: () => true,
      onError: (error) => assert.fail(String(error)),
    });
    registry = new WorkerRegistry(store, log);
    termination = new WorkerTermination({
      registry: registry,
      reconcileQueue: reconcileQueue,
      queue,
      engines: new Map([['LOCAL-1', engine]]),
      inFlight: () => requests,
      clock: new ManualClock(),
      log,
    });
    worker = registry.getOrCreate('e').add(sampleWorker('w', { state: 'ready', readyAt: 2 }));
  });

  test('is told to end when it has finished what it has', async () => {
    requests = 1;
    removed.resolve();
    const leaving = termination.drain(worker, null);
    assert.deepEqual([worker.record.state, steps], ['leaving', ['dismissed', 'saved as leaving']]);
    requests = 0;
    await leaving;
    assert.deepEqual(steps.slice(2), ['stopped', 'removing', 'saved as ended']);
    assert.equal(registry.findWorker('e', 'w'), undefined);
  });

  test('and is stuck with a job that was stopped is not waited for: its other jobs go back', async () => {
    busy = 1;
    removed.resolve();
    const leaving = termination.drain(worker, 'it went on');
    stuck = true;
    await leaving;
    assert.deepEqual(steps.slice(2), [
      'stopped',
      'the worker that ran the job ended: it went on',
      'removing',
      'saved as ended',
    ]);
  });

  test('and is stuck is heard of as ended by then: its other jobs go back all the same', async () => {
    [busy, stuck] = [1, true];
    removed.resolve();
    onStop = () => termination.handleExit(worker, { exitCode: 137, reason: 'it ended with code 137' });
    await termination.drain(worker, 'it went on');
    assert.deepEqual(
      steps.filter((step) => step.startsWith('the worker')),
      ['the worker that ran the job ended: it went on'],
    );
  });

  test('and is heard of as ended by then, has its end written down once, as it was', async () => {
    removed.resolve();
    onStop = () => termination.handleExit(worker, { exitCode: 7, reason: 'it ended with code 7', at: 5 });
    await termination.drain(worker, 'it was in the way');
    assert.deepEqual(steps.filter((step) => step === 'saved as ended').length, 1);
    assert.deepEqual(
      [worker.record.endedAt, worker.record.exitCode, worker.record.reason],
      [5, 7, 'it was in the way'],
    );
  });

  test('is left alone as soon as another server looks after it', async () => {
    requests = 1;
    const leaving = termination.drain(worker, null);
    registry.clear();
    requests = 0;
    await leaving;
    assert.deepEqual(steps, ['dismissed', 'saved as leaving']);
    assert.equal(worker.record.endedAt, null);
  });

  test('is gone at once, and settled when that is written down', async () => {
    const over = termination.terminate(worker, { reason: null });
    assert.equal(registry.findWorker('e', 'w'), undefined);
    const settled = termination.waitUntilDone('e', 'w').then(() => steps.push('settled'));
    removed.resolve();
    await Promise.all([over, settled]);
    assert.deepEqual(steps, ['removing', 'saved as ended', 'settled']);
    await termination.waitUntilDone('e', 'unknown');
  });

  test('by itself has crashed: its jobs are told why, and its endpoint is looked at', async () => {
    removed.resolve();
    await termination.handleExit(worker, { exitCode: 1, reason: 'it ended with code 1' });
    assert.equal(worker.record.reason, 'it ended with code 1: Error: no model');
    assert.deepEqual(steps, [
      'the worker that ran the job ended: it ended with code 1: Error: no model',
      'removing',
      'saved as ended',
      'looked',
    ]);
    assert.deepEqual(
      [registry.find('e')?.crashes.count, registry.find('e')?.crashes.lastLine],
      [1, 'Error: no model'],
    );
  });

  test('by itself because its own check failed tells what that found, not the last line of its log', async () => {
    removed.resolve();
    unhealthy = 'model_is_there: RuntimeError: no weights';
    await termination.handleExit(worker, { exitCode: 1, reason: 'it ended with code 1' });
    assert.equal(worker.record.reason, 'it ended with code 1: model_is_there: RuntimeError: no weights');
    assert.equal(registry.find('e')?.crashes.lastLine, 'model_is_there: RuntimeError: no weights');
  });

  for (const [what, work] of [
    ['a job', () => (jobs = true)],
    ['a request', () => (worker.served = true)],
  ] as const) {
    test(`by itself and with code 0, after it was given ${what}, is no mishap`, async () => {
      removed.resolve();
      work();
      await termination.handleExit(worker, { exitCode: 0, reason: 'it ended with code 0' });
      assert.deepEqual([worker.record.reason, registry.find('e')?.crashes.count], [null, 0]);
    });
  }

  test('by itself and with code 0, before it did anything, has crashed all the same', async () => {
    removed.resolve();
    await termination.handleExit(worker, { exitCode: 0, reason: 'it ended with code 0', at: 3 });
    assert.deepEqual(
      [worker.record.reason, registry.find('e')?.crashes.count],
      ['it ended with code 0: Error: no model', 1],
    );
  });
});
