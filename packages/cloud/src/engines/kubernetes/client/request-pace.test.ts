import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RequestPace } from './request-pace.ts';

test('after a rest a burst goes at once, and the rest at the steady rate', () => {
  const pace = new RequestPace({ perSecond: 100, burst: 3 });
  const waits = (count: number, now: number): number[] =>
    Array.from({ length: count }, () => pace.waitMs(now));
  assert.deepEqual(waits(6, 1_000), [0, 0, 0, 10, 20, 30]);
  assert.deepEqual(waits(1, 1_005), [35]);
  // A long rest does not allow more than the burst.
  assert.deepEqual(waits(4, 60_000), [0, 0, 0, 10]);
});
