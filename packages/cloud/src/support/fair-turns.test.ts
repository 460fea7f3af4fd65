import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FairTurns } from './fair-turns.ts';

test('one piece is begun in a turn, and owners take turns', async () => {
  const deferred: (() => void)[] = [];
  const turns = new FairTurns(1, (callback) => void deferred.push(callback));
  const begun: string[] = [];
  const ask = (owner: string): void => void turns.next(owner).then(() => begun.push(owner));
  for (let count = 0; count < 3; count += 1) ask('flooder');
  ask('other');
  for (const expected of [
    ['flooder'],
    ['flooder', 'other'],
    ['flooder', 'other', 'flooder'],
    ['flooder', 'other', 'flooder', 'flooder'],
  ]) {
    assert.equal(deferred.length, 1);
    deferred.shift()?.();
    await Promise.resolve();
    assert.deepEqual(begun, expected);
  }
  assert.equal(deferred.length, 0);
});

test('several pieces may be begun in a turn, and owners take turns within it', async () => {
  const deferred: (() => void)[] = [];
  const turns = new FairTurns(3, (callback) => void deferred.push(callback));
  const begun: string[] = [];
  for (const owner of ['flooder', 'flooder', 'flooder', 'flooder', 'other'])
    void turns.next(owner).then(() => begun.push(owner));
  deferred.shift()?.();
  await Promise.resolve();
  assert.deepEqual(begun, ['flooder', 'other', 'flooder']);
  deferred.shift()?.();
  await Promise.resolve();
  assert.equal(begun.length, 5);
  assert.equal(deferred.length, 0);
});
