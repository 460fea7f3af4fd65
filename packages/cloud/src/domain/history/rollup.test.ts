import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addValue, averageOf, durationBucket, mergeRollup, observe, percentileOf } from './rollup.ts';
import type { Rollup } from './rollup.ts';

function rollupOf(durations: readonly number[]): Rollup {
  const rollup: Rollup = {};
  for (const duration of durations) addValue(rollup, `run/${durationBucket(duration)}`, 1, duration);
  return rollup;
}

test('percentiles of evenly spread times are near the true ones', () => {
  const durations = Array.from({ length: 1_000 }, (_, index) => index + 1);
  const rollup = rollupOf(durations);
  for (const percent of [50, 70, 90, 98]) {
    const found = percentileOf(rollup, 'run', percent) ?? 0;
    assert.ok(Math.abs(found - percent * 10) < 30, `${percent} %: ${found}`);
  }
});

test('the median of equal times is that time, also above all bounds', () => {
  for (const duration of [3, 75, 1_000, 20_000_000])
    assert.equal(percentileOf(rollupOf([duration, duration, duration]), 'run', 50), duration);
  assert.equal(percentileOf({}, 'wait', 50), null);
});

test('merged periods have the counts, sums and largest values of both', () => {
  const [one, other]: Rollup[] = [{}, {}];
  observe(one as Rollup, 'queued', 4);
  observe(other as Rollup, 'queued', 10);
  observe(other as Rollup, 'cpu', 1);
  const all = mergeRollup(one as Rollup, other as Rollup);
  assert.deepEqual(all, { queued: [2, 14, 10], cpu: [1, 1, 1] });
  assert.equal(averageOf(all, 'queued'), 7);
  assert.equal(averageOf(all, 'memory'), null);
});
