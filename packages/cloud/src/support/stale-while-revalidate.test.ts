import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from './clock.ts';
import { staleWhileRevalidate } from './stale-while-revalidate.ts';

test('a stale value is returned and read again in the background', async () => {
  const clock = new ManualClock();
  const failures: unknown[] = [];
  const readings = [
    Promise.withResolvers<number>(),
    Promise.withResolvers<number>(),
    Promise.withResolvers<number>(),
    Promise.withResolvers<number>(),
  ];
  let count = 0;
  const read = staleWhileRevalidate(
    () => readings[count++]?.promise ?? Promise.reject(new Error('too often')),
    1000,
    clock,
    (error) => failures.push(error),
  );
  const first = read();
  readings[0]?.resolve(1);
  assert.equal(await first, 1);
  clock.advance(1000);
  assert.deepEqual([await read(), await read(), count], [1, 1, 2]);
  readings[1]?.resolve(2);
  await readings[1]?.promise;
  assert.equal(await read(), 2);
  clock.advance(1000);
  assert.deepEqual([await read(), await read()], [2, 2]);
  const failure = new Error('it does not answer');
  readings[2]?.reject(failure);
  await assert.rejects(Promise.resolve(readings[2]?.promise), failure);
  const next = read();
  readings[3]?.resolve(4);
  assert.equal(await next, 4);
  assert.deepEqual(failures, [failure]);
});
