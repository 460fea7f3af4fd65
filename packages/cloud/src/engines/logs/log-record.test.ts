import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatBatch, plainLines } from './log-record.ts';

test('lines that are formatted together are the same as one by one', () => {
  const bytes = Buffer.from('one\n\nthree äöü\nfour\rfour\nunfinished');
  const plain = plainLines(bytes, 20);
  assert.deepEqual(plain, { lines: bytes.subarray(0, bytes.lastIndexOf('\n') + 1), count: 4 });
  const together = formatBatch(
    [{ ts: 12, source: 'container', lines: plain.lines, count: plain.count }],
    'mark',
  );
  const each = ['one', '', 'three äöü', 'four\rfour'].map((line) => ({
    ts: 12,
    source: 'container' as const,
    line: Buffer.from(line),
  }));
  assert.equal(together.toString(), formatBatch(each, 'mark').toString());
});

test('lines that are not logged as they are have to be looked at', () => {
  for (const text of ['a\r\n', '\nb\r\n', `${'x'.repeat(21)}\n`])
    assert.equal(plainLines(Buffer.from(text), 20), undefined);
  assert.deepEqual(plainLines(Buffer.from('x'.repeat(21)), 20), { lines: Buffer.alloc(0), count: 0 });
});
