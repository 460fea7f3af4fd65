import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatCount } from './format.ts';

test('counts are grouped as Intl does it', () => {
  const format = new Intl.NumberFormat('en-US');
  for (const count of [0, 7, 999, 1000, 12_345, 123_456, 1_234_567, -1, -999, -1000, -54_321, 1234.5, 0.125])
    assert.equal(formatCount(count), format.format(count));
});
