import assert from 'node:assert/strict';
import { test } from 'node:test';
import { usageSince } from './usage.ts';

test('usage counts since the last time, without what the kernel only keeps', () => {
  const stats = { cpu_stats: { cpu_usage: { total_usage: 3e9 } }, memory_stats: { usage: 1000, stats: { inactive_file: 400 } } };
  const { usage, sample } = usageSince({ cpuSeconds: 1, at: 1000 }, stats, 5000);
  assert.deepEqual([usage, sample], [{ cpu: 0.5, memoryInBytes: 600 }, { cpuSeconds: 3, at: 5000 }]);
  assert.equal(usageSince(sample, { memory_stats: { usage: 1000, stats: { total_inactive_file: 100 } } }, 6000).usage.memoryInBytes, 900);
});
