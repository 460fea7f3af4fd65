import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { KeyedMutex } from './keyed-mutex.ts';

describe('keyed mutex', () => {
  test('work with one key runs in order, with other keys concurrently', async () => {
    const turns = new KeyedMutex();
    const done: string[] = [];
    const first = Promise.withResolvers<void>();
    const one = turns.runExclusive('a', async () => {
      await first.promise;
      done.push('a1');
      throw new Error('failed');
    });
    const two = turns.runExclusive('a', () => Promise.resolve(done.push('a2')));
    await turns.runExclusive('b', () => Promise.resolve(done.push('b1')));
    first.resolve();
    await assert.rejects(one, /failed/);
    await two;
    assert.deepEqual(done, ['b1', 'a1', 'a2']);
  });

  test('can wait until all work is done', async () => {
    const turns = new KeyedMutex();
    let isDone = false;
    void turns.runExclusive('a', async () => {
      await Promise.resolve();
      isDone = true;
    });
    await turns.waitUntilFree('a');
    assert.equal(isDone, true);
    await turns.waitUntilFree('unknown');
    await turns.waitUntilAllFree();
  });
});
