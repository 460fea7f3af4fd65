import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { ReconcileQueue } from './reconcile-queue.ts';

function createQueue(): {
  reconcileQueue: ReconcileQueue;
  runs: string[];
  end: () => void;
  fail: (error: Error) => void;
  errors: unknown[];
  close: () => void;
} {
  const runs: string[] = [];
  const errors: unknown[] = [];
  const pending: { resolve: () => void; reject: (error: Error) => void }[] = [];
  let open = true;
  const reconcileQueue = new ReconcileQueue({
    reconcile: (id) => {
      runs.push(id);
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      pending.push({ resolve, reject });
      return promise;
    },
    isEnabled: () => open,
    onError: (error) => errors.push(error),
  });
  return {
    reconcileQueue,
    runs,
    errors,
    end: () => pending.shift()?.resolve(),
    fail: (error) => pending.shift()?.reject(error),
    close: () => (open = false),
  };
}

test('runs one id at a time and different ids side by side', async () => {
  const { reconcileQueue, runs, end } = createQueue();
  reconcileQueue.enqueue('a');
  reconcileQueue.enqueue('a');
  reconcileQueue.enqueue('b');
  assert.deepEqual(runs, ['a', 'b']);
  end();
  await turn();
  assert.deepEqual(runs, ['a', 'b', 'a'], 'an id that is enqueued during its run runs again');
  end();
  end();
  await reconcileQueue.whenAllDone();
  assert.ok(!reconcileQueue.isRunning('a'));
  assert.equal(runs.length, 3);
});

test('reports a failed run, and runs the id again all the same', async () => {
  const { reconcileQueue, runs, errors, fail, end } = createQueue();
  reconcileQueue.enqueue('a');
  reconcileQueue.enqueue('a');
  fail(new Error('no'));
  await turn();
  assert.deepEqual([runs, errors.length], [['a', 'a'], 1]);
  end();
  await reconcileQueue.whenDone('a');
});

test('runs no id that is not enabled, even if it was enqueued before', async () => {
  const { reconcileQueue, runs, end, close } = createQueue();
  reconcileQueue.enqueue('a');
  reconcileQueue.enqueue('a');
  close();
  end();
  await reconcileQueue.whenDone('a');
  reconcileQueue.enqueue('b');
  assert.deepEqual(runs, ['a']);
});
