import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { randomIds } from './ids.ts';

describe('ids', () => {
  test('are lower-case letters and digits of the requested length', () => {
    assert.match(randomIds.resource(), /^[0-9a-z]{14}$/);
    for (const length of [1, 10, 200])
      assert.match(randomIds.resource(length), new RegExp(`^[0-9a-z]{${length}}$`));
  });

  test('do not collide, and all letters are equally likely', () => {
    const made = Array.from({ length: 20_000 }, () => randomIds.resource());
    assert.equal(new Set(made).size, made.length);
    const counts = new Map<string, number>();
    for (const letter of made.join('')) counts.set(letter, (counts.get(letter) ?? 0) + 1);
    assert.equal(counts.size, 36);
    // 280,000 letters: 7,778 of each, give or take 87; five times that is beyond chance.
    for (const [letter, count] of counts)
      assert.ok(Math.abs(count - (20_000 * 14) / 36) < 500, `${letter}: ${count}`);
  });

  test('of keys have the prefix that tools recognise', () => {
    assert.match(randomIds.apiKey(), /^rpa_[0-9A-Z]{44}$/);
    assert.notEqual(randomIds.apiKey(), randomIds.apiKey());
  });
});
