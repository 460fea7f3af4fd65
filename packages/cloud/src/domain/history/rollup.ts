/**
 * What happened in a period: values by name, each with how many there were, their sum and the largest. Counts
 * have only the first. Two periods are merged name by name, so a row for an hour is made of rows for minutes,
 * and a longer step of a chart of shorter ones.
 */
export type Rollup = Record<string, RollupValue>;
export type RollupValue = [count: number, total: number, max: number];

export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;

/** Upper bounds of the buckets of waiting and running times, in milliseconds; the last bucket has none. */
export const DURATION_BOUNDS_MS = [
  5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
  1_000_000, 2_000_000, 5_000_000,
] as const;

export function durationBucket(milliseconds: number): number {
  let bucket = 0;
  while (bucket < DURATION_BOUNDS_MS.length && milliseconds > (DURATION_BOUNDS_MS[bucket] as number))
    bucket += 1;
  return bucket;
}

export function addValue(rollup: Rollup, name: string, count: number, total: number, max = 0): void {
  const value = rollup[name];
  if (value === undefined) {
    rollup[name] = [count, total, max];
    return;
  }
  value[0] += count;
  value[1] += total;
  value[2] = Math.max(value[2], max);
}

/** One observation of something that has a size. */
export function observe(rollup: Rollup, name: string, value: number): void {
  addValue(rollup, name, 1, value, value);
}

export function mergeRollup(into: Rollup, from: Rollup): Rollup {
  for (const [name, [count, total, max]] of Object.entries(from)) addValue(into, name, count, total, max);
  return into;
}

export function countOf(rollup: Rollup, name: string): number {
  return rollup[name]?.[0] ?? 0;
}

export function averageOf(rollup: Rollup, name: string): number | null {
  const value = rollup[name];
  return value === undefined || value[0] === 0 ? null : value[1] / value[0];
}

/**
 * A percentile of durations, from their buckets: within a bucket, values are taken to be spread evenly around
 * their mean. Null where there are none.
 */
export function percentileOf(rollup: Rollup, name: 'wait' | 'run', percent: number): number | null {
  const buckets = Array.from(
    { length: DURATION_BOUNDS_MS.length + 1 },
    (_, bucket) => rollup[`${name}/${bucket}`],
  );
  const all = buckets.reduce((sum, value) => sum + (value?.[0] ?? 0), 0);
  if (all === 0) return null;
  let rank = (percent / 100) * all;
  for (const [bucket, value] of buckets.entries()) {
    if (value === undefined) continue;
    const [count, total] = value;
    if (rank > count) {
      rank -= count;
      continue;
    }
    const mean = total / count;
    const low = bucket === 0 ? 0 : (DURATION_BOUNDS_MS[bucket - 1] as number);
    const high = DURATION_BOUNDS_MS[bucket] ?? Math.max(mean, 2 * mean - low);
    // As wide as the bucket allows around its mean.
    const half = Math.min(mean - low, high - mean);
    return Math.round(mean - half + 2 * half * (rank / count));
  }
  return null;
}
