import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
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

test('what is left of a chunk does not keep the chunk in memory', () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  collectGarbage();
  const before = process.memoryUsage().arrayBuffers;
  const outputs = Array.from({ length: 200 }, () => {
    const lines = new TimedLines();
    const chunk = Buffer.alloc(64 * 1024);
    chunk.write('2026-01-01T00:00:00Z it runs\n');
    lines.push(chunk.subarray(0, 29));
    return lines;
  });
  collectGarbage();
  const kept = process.memoryUsage().arrayBuffers - before;
  assert.ok(kept < 1024 * 1024, `${outputs.length} outputs keep ${kept} bytes`);
});
