import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import { waitFor } from '../../../../testing/src/wait-for.ts';
import type { InstanceEngine } from '../../engines/engine.ts';
import type { JobQueue } from '../../queue/job-queue.ts';
import type { WorkerStore } from '../../store/worker-store.ts';
import { ManualClock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import { createLog } from '../../support/log.ts';
import { ReconcileQueue } from '../reconcile-queue.ts';
import { WorkerTermination } from './worker-termination.ts';
import type { TrackedWorker } from './tracked-worker.ts';
import { WorkerRegistry } from './worker-registry.ts';
import { sampleWorker } from './worker.fixture.ts';

describe('the end of a worker', () => {
  let steps: string[];
  let requests: number;
  /** Whether it was given jobs. */
  let jobs: boolean;
  /** How many jobs it has. */
  let busy: number;
  /** Whether it is stuck with a cancelled job. */
  let stuck: boolean;
  /** The finding of its own fitness check. */
  let unhealthy: string | null;
  /** How often the store refuses. */
  let refusals: number;
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
    refusals = 0;
    unhealthy = null;
    removed = Promise.withResolvers<void>();
    const store = {
      saveWorker: async ({ state }: { state: string }) => {
        refusals -= 1;
        if (refusals >= 0) throw new BerthError('unavailable', 'the database does not answer');
        steps.push(`saved as ${state}`);
      },
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
      drainWorker: () => void steps.push('no more jobs'),
      reaper: {
        workerGone: async (_endpoint: string, _worker: string, reason: string) => void steps.push(reason),
      },
    } as unknown as JobQueue;
    const log = createLog({ level: 'silent', format: 'json' });
    const reconcileQueue = new ReconcileQueue({
      reconcile: async () => void steps.push('reconciled'),
      isEnabled: () => true,
      onError: (error) => assert.fail(String(error)),
    });
    registry = new WorkerRegistry(store, log);
    termination = new WorkerTermination({
      registry,
      reconcileQueue,
      queue,
      engines: new Map([['LOCAL-1', engine]]),
      inFlight: () => requests,
      clock: new ManualClock(),
      log,
    });
    worker = registry.getOrCreate('e').add(sampleWorker('w', { state: 'ready', readyAt: 2 }));
  });

  test('stops it when it has finished its requests', async () => {
    requests = 1;
    removed.resolve();
    const drained = termination.drain(worker, null);
    assert.deepEqual([worker.record.state, steps], ['leaving', ['no more jobs', 'saved as leaving']]);
    requests = 0;
    await drained;
    assert.deepEqual(steps.slice(2), ['reconciled', 'stopped', 'saved as ended', 'removing']);
    assert.equal(registry.findWorker('e', 'w'), undefined);
  });

  test('is recorded also where the engine does not answer, and the store only later', async () => {
    refusals = 1;
    const terminated = termination.terminate(worker, { reason: null, at: 7 });
    await waitFor('the removal', () => steps.includes('removing'));
    removed.reject(new BerthError('unavailable', 'the engine does not answer'));
    await terminated;
    assert.deepEqual(steps, ['saved as ended', 'removing']);
    assert.equal(worker.record.endedAt, 7);
    assert.equal(termination.isPending('w'), false);
  });

  test('leaves its place to another when it is stored, or at once where its instance has ended', async () => {
    refusals = 1;
    removed.resolve();
    const other = registry.getOrCreate('e').add(sampleWorker('x', { state: 'ready', readyAt: 2 }));
    const exited = termination.handleExit(other, { exitCode: 1, reason: 'it ended with code 1' });
    const terminated = termination.terminate(worker, { reason: null });
    assert.equal(termination.countUnrecorded('e'), 1);
    await Promise.all([exited, terminated]);
    assert.equal(termination.countUnrecorded('e'), 0);
  });

  test('keeps its place until it is stored that it leaves', async () => {
    removed.resolve();
    const drained = termination.drain(worker, null);
    assert.equal(termination.countUnrecorded('e'), 1);
    await waitFor('it is stored', () => steps.includes('reconciled'));
    assert.equal(termination.countUnrecorded('e'), 0);
    await drained;
  });

  test('does not wait for one that is stuck with a cancelled job: its other jobs go back', async () => {
    busy = 1;
    removed.resolve();
    const drained = termination.drain(worker, 'it went on');
    stuck = true;
    await drained;
    assert.deepEqual(steps.slice(2), [
      'reconciled',
      'stopped',
      'the worker that ran the job ended: it went on',
      'saved as ended',
      'removing',
    ]);
  });

  test('is no crash where its machine was lost: the next start does not wait', async () => {
    removed.resolve();
    const workers = registry.getOrCreate('e');
    const other = workers.add(sampleWorker('v', { state: 'ready', readyAt: 2 }));
    await termination.handleExit(worker, { reason: 'it ended, and nobody saw how', disrupted: true });
    assert.deepEqual([workers.crashes.count, steps.includes('saved as ended')], [0, true]);
    assert.match(worker.record.reason ?? '', /nobody saw how/);
    await termination.handleExit(other, { exitCode: 1, reason: 'it ended with code 1' });
    assert.equal(workers.crashes.count, 1);
  });

  test('reported by the engine while a stuck worker is stopped: its other jobs go back all the same', async () => {
    [busy, stuck] = [1, true];
    removed.resolve();
    onStop = () => termination.handleExit(worker, { exitCode: 137, reason: 'it ended with code 137' });
    await termination.drain(worker, 'it went on');
    assert.deepEqual(
      steps.filter((step) => step.startsWith('the worker')),
      ['the worker that ran the job ended: it went on'],
    );
  });

  test('reported by the engine while it is stopped is recorded once, as reported', async () => {
    removed.resolve();
    onStop = () => termination.handleExit(worker, { exitCode: 7, reason: 'it ended with code 7', at: 5 });
    await termination.drain(worker, 'it was in the way');
    assert.deepEqual(steps.filter((step) => step === 'saved as ended').length, 1);
    assert.deepEqual(
      [worker.record.endedAt, worker.record.exitCode, worker.record.reason],
      [5, 7, 'it was in the way'],
    );
  });

  test('is left to another server that has become the leader', async () => {
    requests = 1;
    const drained = termination.drain(worker, null);
    registry.clear();
    requests = 0;
    await drained;
    assert.deepEqual(steps, ['no more jobs', 'saved as leaving', 'reconciled']);
    assert.equal(worker.record.endedAt, null);
  });

  test('untracks it at once, and is done when it is recorded', async () => {
    const ended = termination.terminate(worker, { reason: null });
    assert.equal(registry.findWorker('e', 'w'), undefined);
    const done = termination.waitUntilDone('e', 'w').then(() => steps.push('done'));
    removed.resolve();
    await Promise.all([ended, done]);
    assert.deepEqual(steps, ['saved as ended', 'removing', 'done']);
    await termination.waitUntilDone('e', 'unknown');
  });

  test('by itself is a crash: its jobs get the reason, and its endpoint is reconciled', async () => {
    removed.resolve();
    await termination.handleExit(worker, { exitCode: 1, reason: 'it ended with code 1' });
    assert.equal(worker.record.reason, 'it ended with code 1: Error: no model');
    assert.deepEqual(steps, [
      'the worker that ran the job ended: it ended with code 1: Error: no model',
      'saved as ended',
      'removing',
      'reconciled',
    ]);
    assert.deepEqual(
      [registry.find('e')?.crashes.count, registry.find('e')?.crashes.lastLine],
      [1, 'Error: no model'],
    );
  });

  test('after a failed fitness check has the finding as its reason, not the last log line', async () => {
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
    test(`by itself with code 0, after it was given ${what}, is no crash`, async () => {
      removed.resolve();
      work();
      await termination.handleExit(worker, { exitCode: 0, reason: 'it ended with code 0' });
      assert.deepEqual([worker.record.reason, registry.find('e')?.crashes.count], [null, 0]);
    });
  }

  test('by itself with code 0, before it did anything, is a crash', async () => {
    removed.resolve();
    await termination.handleExit(worker, { exitCode: 0, reason: 'it ended with code 0', at: 3 });
    assert.deepEqual(
      [worker.record.reason, registry.find('e')?.crashes.count],
      ['it ended with code 0: Error: no model', 1],
    );
  });
});
