import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseLeaseAndChunkNumber } from './chunk-number.ts';

test('a chunk has a number or none', () => {
  assert.deepEqual(parseLeaseAndChunkNumber('abc~1'), { lease: 'abc', number: 1 });
  assert.deepEqual(parseLeaseAndChunkNumber('abc~2147483647'), { lease: 'abc', number: 2 ** 31 - 1 });
  assert.equal(parseLeaseAndChunkNumber('abc'), undefined);
});

test('anything else in its place is refused', () => {
  for (const number of [
    '',
    '0',
    '-1',
    '01',
    '1.5',
    '1e3',
    '0x10',
    ' 1',
    'one',
    'NaN',
    'Infinity',
    '2147483648',
    '9'.repeat(400),
    '1~2',
    '~1',
  ]) {
    assert.throws(() => parseLeaseAndChunkNumber(`abc~${number}`), { code: 'malformed' }, number);
  }
});
