import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { AVAILABILITY_LEVELS, availabilityLevel, requestsThatFit } from './availability.ts';

const machines = fc.array(fc.nat({ max: 16 }), { maxLength: 6 });
const wanted = fc.integer({ min: 1, max: 16 });

describe('availability', () => {
  test('a request is never spread over machines', () => {
    assert.equal(requestsThatFit([1, 1], 2), 0);
    assert.equal(requestsThatFit([2, 5], 2), 3);
    assert.equal(requestsThatFit([], 1), 0);
  });

  test('the level follows the number of requests that fit', () => {
    assert.deepEqual([0, 1, 2, 3, 4, 100].map(availabilityLevel), [
      'NONE',
      'LOW',
      'MEDIUM',
      'MEDIUM',
      'HIGH',
      'HIGH',
    ]);
  });

  test('NONE exactly when no machine has enough', () => {
    fc.assert(
      fc.property(machines, wanted, (free, count) => {
        assert.equal(
          availabilityLevel(requestsThatFit(free, count)) === 'NONE',
          free.every((number) => number < count),
        );
      }),
    );
  });

  test('what fits never exceeds what is free', () => {
    fc.assert(
      fc.property(machines, wanted, (free, count) => {
        assert.ok(requestsThatFit(free, count) * count <= free.reduce((sum, number) => sum + number, 0));
      }),
    );
  });

  test('is monotonic: more machines never lower it, larger requests never raise it', () => {
    const rank = (free: number[], count: number): number =>
      AVAILABILITY_LEVELS.indexOf(availabilityLevel(requestsThatFit(free, count)));
    fc.assert(
      fc.property(machines, fc.nat({ max: 16 }), wanted, (free, extra, count) => {
        assert.ok(rank([...free, extra], count) >= rank(free, count));
        assert.ok(rank(free, count + 1) <= rank(free, count));
      }),
    );
  });
});
