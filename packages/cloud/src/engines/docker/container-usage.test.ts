import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cpuSecondsOf, memoryOf } from './container-usage.ts';

test('inactive page cache is not counted as memory', () => {
  const stats = {
    cpu_stats: { cpu_usage: { total_usage: 3e9 } },
    memory_stats: { usage: 1000, stats: { inactive_file: 400 } },
  };
  assert.deepEqual([cpuSecondsOf(stats), memoryOf(stats)], [3, 600]);
  assert.equal(memoryOf({ memory_stats: { usage: 1000, stats: { total_inactive_file: 100 } } }), 900);
  assert.deepEqual([cpuSecondsOf({}), memoryOf({})], [0, 0]);
});
