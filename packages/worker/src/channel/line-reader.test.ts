import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { LineReader } from './line-reader.ts';

test('lines are the same however they are cut', () => {
  const line = fc.string({ unit: 'binary' }).map((text) => text.replaceAll('\n', ' '));
  fc.assert(
    fc.property(fc.array(line), fc.array(fc.nat(40)), (lines, cuts) => {
      const bytes = Buffer.from(lines.map((text) => `${text}\n`).join(''));
      const read: string[] = [];
      const reader = new LineReader((text) => read.push(text));
      let from = 0;
      for (const cut of cuts) {
        reader.push(bytes.subarray(from, from + cut));
        from += cut;
      }
      reader.push(bytes.subarray(from));
      assert.deepEqual(read, lines);
    }),
  );
});
