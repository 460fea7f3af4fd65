import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unpooledCopy } from './unpooled-copy.ts';

test('a copy keeps nothing but itself in memory', () => {
  const bytes = Buffer.from('few bytes');
  const copy = unpooledCopy(bytes);
  assert.equal(copy.toString(), 'few bytes');
  assert.equal(copy.buffer.byteLength, bytes.length);
  bytes.fill(0);
  assert.equal(copy.toString(), 'few bytes');
});
