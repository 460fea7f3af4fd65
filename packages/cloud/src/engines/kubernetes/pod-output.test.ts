import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TimedLines } from './pod-output.ts';
import { parseUsage } from './pod-usage.ts';

test('lines are read across chunks, with stamps that can be compared', () => {
  const lines = new TimedLines();
  const text =
    '2026-01-01T00:00:00.5Z one\r\n' +
    '2026-01-01T00:00:00.51Z two words\nfailed to read\n2026-01-01T00:00:01Z \n2026-01-01T00:00:02Z end';
  const read = [...text].flatMap((character) => lines.push(Buffer.from(character)));
  read.push(...lines.rest());
  assert.deepEqual(
    read.map(({ line }) => line.toString()),
    ['one', 'two words', '', 'end'],
  );
  const stamps = read.map(({ stamp }) => stamp);
  assert.deepEqual(stamps, stamps.toSorted());
  assert.deepEqual(lines.rest(), []);
});

test('usage is read from both versions of cgroups', () => {
  assert.deepEqual(parseUsage('usage_usec 1500000\nuser_usec 1\n2000\ninactive_file 500\n'), {
    cpuSeconds: 1.5,
    memoryInBytes: 1500,
  });
  assert.deepEqual(parseUsage('usage_nsec 1500000000\n2000\ntotal_inactive_file 500\n'), {
    cpuSeconds: 1.5,
    memoryInBytes: 1500,
  });
  assert.equal(parseUsage('nothing'), undefined);
});

test('what is left of a chunk is a copy, which does not keep the chunk in memory', () => {
  const lines = new TimedLines();
  const chunk = Buffer.from('2026-01-01T00:00:00Z one\n2026-01-01T00:00:01Z two');
  assert.deepEqual(
    lines.push(chunk).map(({ line }) => line.toString()),
    ['one'],
  );
  chunk.fill(0);
  assert.deepEqual(
    lines.rest().map(({ line }) => line.toString()),
    ['two'],
  );
});
