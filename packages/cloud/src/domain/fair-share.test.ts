import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { checkProperty, seed } from '../../../testing/src/property-testing.ts';
import { fairShare, rotateAfter, lastServed } from './fair-share.ts';

test('each account gets one before any gets two, and none more than it has waiting', () => {
  assert.deepEqual(fairShare([], 5), []);
  assert.deepEqual(fairShare([10, 2], 4), [2, 2]);
  assert.deepEqual(fairShare([10, 1], 6), [5, 1]);
  assert.deepEqual(fairShare([1, 1, 1], 2), [1, 1, 0]);
  assert.deepEqual(fairShare([3, 3], 100), [3, 3]);
  assert.deepEqual(fairShare([3, 3], 0), [0, 0]);
});

test('the account after the last one served is first', () => {
  assert.deepEqual(rotateAfter(['a', 'b', 'c']), ['a', 'b', 'c']);
  assert.deepEqual(rotateAfter(['a', 'b', 'c'], 'b'), ['c', 'a', 'b']);
  assert.deepEqual(rotateAfter(['a', 'c'], 'b'), ['c', 'a']);
  assert.deepEqual(
    [lastServed(['c', 'a', 'b'], [2, 2, 1]), lastServed(['c', 'a'], [1, 1]), lastServed(['c', 'a'], [1, 0])],
    ['a', 'a', 'c'],
  );
});

test(`however many wait, all places are used and fairly (seed ${seed})`, async () => {
  await checkProperty(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 30 }), { maxLength: 10 }),
      fc.integer({ min: 0, max: 120 }),
      (waiting, wanted) => {
        const shares = fairShare(waiting, wanted);
        const sum = (numbers: number[]): number => numbers.reduce((total, number) => total + number, 0);
        assert.equal(sum(shares), Math.min(wanted, sum(waiting)));
        for (const [index, share] of shares.entries()) {
          assert.ok(share >= 0 && share <= (waiting[index] ?? 0));
          if (share < (waiting[index] ?? 0))
            assert.ok(
              shares.every((other) => other <= share + 1),
              `${shares.join(', ')} of ${waiting.join(', ')}`,
            );
        }
      },
    ),
    1_000,
  );
});
