import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty, seed } from '../../../../testing/src/property-testing.ts';
import { LineReader } from './line-reader.ts';

describe('lines', () => {
  test('come out when they are complete', () => {
    const reader = new LineReader(100);
    assert.deepEqual(reader.read(Buffer.from('T 1\nL a,b\nD ')), ['T 1', 'L a,b']);
    assert.deepEqual(reader.read(Buffer.from('x')), []);
    assert.deepEqual(reader.read(Buffer.from(' y\n\n')), ['D x y', '']);
  });

  test(`are the same however they were cut, also inside a character (seed ${seed})`, async () => {
    await checkProperty(
      fc.property(
        fc.array(fc.string({ unit: 'grapheme' }).map((line) => line.replaceAll('\n', ' '))),
        fc.array(fc.nat({ max: 20 })),
        (lines, cuts) => {
          const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
          const reader = new LineReader(bytes.length + 1);
          const read: string[] = [];
          let from = 0;
          for (const cut of cuts) {
            read.push(...reader.read(bytes.subarray(from, from + cut)));
            from += cut;
          }
          read.push(...reader.read(bytes.subarray(from)));
          assert.deepEqual(read, lines);
        },
      ),
    );
  });

  test('that never end are refused', () => {
    const reader = new LineReader(10);
    assert.deepEqual(reader.read(Buffer.from('0123456789')), []);
    assert.throws(() => reader.read(Buffer.from('x')), /longer than 10 bytes/);
  });
});
