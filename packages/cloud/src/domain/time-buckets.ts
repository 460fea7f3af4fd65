/**
 * Times here are whole seconds since 1970. Days, months and years are those of UTC; a week begins on Monday.
 */
export const BUCKET_SIZES = ['hour', 'day', 'week', 'month', 'year'] as const;
export type BucketSize = (typeof BUCKET_SIZES)[number];

export interface Bucket {
  start: number;
  /** Exclusive. */
  end: number;
}

const HOUR = 3_600;
const DAY = 86_400;
const WEEK = 7 * DAY;
/** 5 January 1970 was a Monday. */
const FIRST_MONDAY = 4 * DAY;

/** The start of the bucket that a second is in. */
export function bucketStart(size: BucketSize, second: number): number {
  switch (size) {
    case 'hour':
      return floorTo(second, HOUR);
    case 'day':
      return floorTo(second, DAY);
    case 'week':
      return floorTo(second - FIRST_MONDAY, WEEK) + FIRST_MONDAY;
    case 'month':
    case 'year': {
      const date = new Date(second * 1000);
      return Date.UTC(date.getUTCFullYear(), size === 'month' ? date.getUTCMonth() : 0) / 1000;
    }
  }
}

/** The start of the bucket that is so many after (or, below zero, before) the one that starts here. */
export function bucketAfter(size: BucketSize, start: number, count = 1): number {
  if (size === 'hour') return start + count * HOUR;
  if (size === 'day') return start + count * DAY;
  if (size === 'week') return start + count * WEEK;
  const date = new Date(start * 1000);
  return (
    Date.UTC(
      date.getUTCFullYear() + (size === 'year' ? count : 0),
      date.getUTCMonth() + (size === 'month' ? count : 0),
    ) / 1000
  );
}

export function bucketsBetween(size: BucketSize, start: number, end: number): Bucket[] {
  const buckets: Bucket[] = [];
  for (let at = start; at < end; ) {
    const next = bucketAfter(size, at);
    buckets.push({ start: at, end: next });
    at = next;
  }
  return buckets;
}

/** The first bucket that ends after a second. */
export function firstBucketEndingAfter(buckets: readonly Bucket[], second: number): number {
  let [low, high] = [0, buckets.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((buckets[middle]?.end ?? Infinity) > second) high = middle;
    else low = middle + 1;
  }
  return low;
}

function floorTo(value: number, step: number): number {
  return Math.floor(value / step) * step;
}
