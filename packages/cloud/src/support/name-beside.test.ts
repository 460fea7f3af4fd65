import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { check } from '../../../../tests/support/seed.ts';
import { LONGEST_NAME, nameBeside } from './name-beside.ts';

test('the name of what lies beside a file says whose it is', () => {
  assert.equal(nameBeside('model.bin', 'part'), '.model.bin.part');
});

test('the name of what lies beside a file is never too long, in whole characters, and no other file has it', async () => {
  const name = fc
    .string({ unit: fc.constantFrom('a', 'ü', '文', '\u{1f600}'), minLength: 1, maxLength: 255 })
    .filter((text) => Buffer.byteLength(text) <= LONGEST_NAME);
  await check(
    fc.property(name, name, (one, other) => {
      const [beside, another] = [
        nameBeside(one, '0123456789abcdef.part'),
        nameBeside(other, '0123456789abcdef.part'),
      ];
      assert.ok(Buffer.byteLength(beside) <= LONGEST_NAME);
      assert.ok(beside.isWellFormed() && !beside.includes('\ufffd'));
      assert.equal(beside === another, one === other);
    }),
  );
  assert.notEqual(nameBeside(`${'文'.repeat(84)}a`, 'part'), nameBeside(`${'文'.repeat(84)}b`, 'part'));
});
