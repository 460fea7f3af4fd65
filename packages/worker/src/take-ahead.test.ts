import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TakeAheadEstimator } from './take-ahead.ts';

function after(...durations: number[]): TakeAheadEstimator {
  const ahead = new TakeAheadEstimator();
  for (const duration of durations) ahead.recordDuration(duration);
  return ahead;
}
const many = (duration: number): number[] => Array.from({ length: 32 }, () => duration);

test('nothing is prefetched before enough jobs have been measured', () => {
  assert.equal(new TakeAheadEstimator().limit(100), 0);
  assert.equal(after(0, 0, 0).limit(100), 0);
});

test('as many jobs are prefetched as start within 20 ms, up to 1,000', () => {
  assert.equal(after(...many(0)).limit(100), 1_000);
  assert.equal(after(...many(10)).limit(1), 2);
  assert.equal(after(...many(10)).limit(100), 200);
  assert.equal(after(...many(21)).limit(1), 0);
});

test('one long job stops the prefetch, and many short ones resume it', () => {
  assert.equal(after(...many(1), 3_000).limit(100), 0);
  assert.equal(after(...many(1), 3_000, ...many(1)).limit(100), 0, 'the long one is among the last');
  assert.equal(after(...many(1), 3_000, ...many(1), ...many(1)).limit(100), 1_000);
});

test('jobs that did not start in time stop the prefetch', () => {
  const ahead = after(...many(0));
  ahead.reset();
  assert.equal(ahead.limit(100), 0);
});
