import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { ReconcileQueue } from './reconcile-queue.ts';

function stage(): {
  reconcileQueue: ReconcileQueue;
  looks: string[];
  end: () => void;
  fail: (error: Error) => void;
  errors: unknown[];
  close: () => void;
} {
  const looks: string[] = [];
  const errors: unknown[] = [];
  const pending: { resolve: () => void; reject: (error: Error) => void }[] = [];
  let open = true;
  const reconcileQueue = new ReconcileQueue({
    reconcile: (id) => {
      looks.push(id);
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      pending.push({ resolve, reject });
      return promise;
    },
    isEnabled: () => open,
    onError: (error) => errors.push(error),
  });
  return {
    reconcileQueue,
    looks,
    errors,
    end: () => pending.shift()?.resolve(),
    fail: (error) => pending.shift()?.reject(error),
    close: () => (open = false),
  };
}

test('one look at a time for each, side by side for different ones', async () => {
  const { reconcileQueue, looks, end } = stage();
  reconcileQueue.enqueue('a');
  reconcileQueue.enqueue('a');
  reconcileQueue.enqueue('b');
  assert.deepEqual(looks, ['a', 'b']);
  end();
  await turn();
  assert.deepEqual(looks, ['a', 'b', 'a'], 'what happened meanwhile is reason for another');
  end();
  end();
  await reconcileQueue.whenAllDone();
  assert.ok(!reconcileQueue.isRunning('a'));
  assert.equal(looks.length, 3);
});

test('a look that fails is told, and the next one comes all the same', async () => {
  const { reconcileQueue, looks, errors, fail, end } = stage();
  reconcileQueue.enqueue('a');
  reconcileQueue.enqueue('a');
  fail(new Error('no'));
  await turn();
  assert.deepEqual([looks, errors.length], [['a', 'a'], 1]);
  end();
  await reconcileQueue.whenDone('a');
});

test('nothing is looked at that may not be, also where it was asked for before', async () => {
  const { reconcileQueue, looks, end, close } = stage();
  reconcileQueue.enqueue('a');
  reconcileQueue.enqueue('a');
  close();
  end();
  await reconcileQueue.whenDone('a');
  reconcileQueue.enqueue('b');
  assert.deepEqual(looks, ['a']);
});
