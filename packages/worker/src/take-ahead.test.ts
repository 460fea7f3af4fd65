import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TakeAhead } from './take-ahead.ts';

function after(...durations: number[]): TakeAhead {
  const ahead = new TakeAhead();
  for (const duration of durations) ahead.ended(duration);
  return ahead;
}
const many = (duration: number): number[] => Array.from({ length: 32 }, () => duration);

test('nothing is taken ahead before enough jobs have been seen', () => {
  assert.equal(new TakeAhead().jobs(100), 0);
  assert.equal(after(0, 0, 0).jobs(100), 0);
});

test('as many as begin within 20 ms are, up to 400', () => {
  assert.equal(after(...many(0)).jobs(100), 400);
  assert.equal(after(...many(10)).jobs(1), 2);
  assert.equal(after(...many(10)).jobs(100), 200);
  assert.equal(after(...many(21)).jobs(1), 0);
});

test('one long job ends it at once, and many short ones bring it back', () => {
  assert.equal(after(...many(1), 3_000).jobs(100), 0);
  assert.equal(after(...many(1), 3_000, ...many(1)).jobs(100), 0, 'the long one is among the last');
  assert.equal(after(...many(1), 3_000, ...many(1), ...many(1)).jobs(100), 400);
});

test('jobs that did not begin in time end it', () => {
  const ahead = after(...many(0));
  ahead.forget();
  assert.equal(ahead.jobs(100), 0);
});
