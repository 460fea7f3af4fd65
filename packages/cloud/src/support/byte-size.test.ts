import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatBytes, parseBytes } from './byte-size.ts';

test('sizes are formatted with units', () => {
  assert.deepEqual([0, 999, 1200, 45_000, 1_500_000].map(formatBytes), [
    '0 bytes',
    '999 bytes',
    '1.2 kB',
    '45 kB',
    '1.5 MB',
  ]);
});

test('sizes are read with and without units', () => {
  assert.deepEqual(['0', '1500', '16MB', '1.5 gb', '64 MiB', '2TB'].map(parseBytes), [
    0,
    1500,
    16_000_000,
    1_500_000_000,
    64 * 1024 ** 2,
    2e12,
  ]);
  for (const text of ['', 'MB', '-1', '1 lightyear', '1e9', '99999 TB', '1.2.3'])
    assert.equal(parseBytes(text), undefined, text);
});
