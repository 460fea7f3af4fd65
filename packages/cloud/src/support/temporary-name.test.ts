import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../testing/src/property-testing.ts';
import { MAX_FILE_NAME_BYTES, temporaryName } from './temporary-name.ts';

test('a temporary name contains the name of its file', () => {
  assert.equal(temporaryName('model.bin', 'part'), '.model.bin.part');
});

test('a temporary name fits the limit, has whole characters and is unique', async () => {
  const name = fc
    .string({ unit: fc.constantFrom('a', 'ü', '文', '\u{1f600}'), minLength: 1, maxLength: 255 })
    .filter((text) => Buffer.byteLength(text) <= MAX_FILE_NAME_BYTES);
  await checkProperty(
    fc.property(name, name, (one, other) => {
      const [beside, another] = [
        temporaryName(one, '0123456789abcdef.part'),
        temporaryName(other, '0123456789abcdef.part'),
      ];
      assert.ok(Buffer.byteLength(beside) <= MAX_FILE_NAME_BYTES);
      assert.ok(beside.isWellFormed() && !beside.includes('\ufffd'));
      assert.equal(beside === another, one === other);
    }),
  );
  assert.notEqual(temporaryName(`${'文'.repeat(84)}a`, 'part'), temporaryName(`${'文'.repeat(84)}b`, 'part'));
});
