import { ruleError } from '../support/errors.ts';
import { bucketAfter, bucketsBetween, bucketStart } from './time-buckets.ts';
import type { Bucket, BucketSize } from './time-buckets.ts';

const DEFAULT_DAYS = 30;
const DAY_MS = 86_400_000;
/** A year of hours, and then some. */
const MAX_BUCKETS = 10_000;
const MIN_TIME = Date.UTC(1970, 0);
const MAX_TIME = Date.UTC(9999, 0);

/** What part of the history is asked for. */
export interface WindowQuery {
  /** As people write instants. */
  startTime?: string;
  endTime?: string;
  bucketSize: BucketSize;
  /** So many buckets, the present one included, in place of a start and an end. */
  lastN?: number;
}

export interface BillingWindow {
  bucketSize: BucketSize;
  /** Seconds since 1970, at the edges of buckets. */
  start: number;
  end: number;
  buckets: Bucket[];
}

/** Default: the last thirty days. Widened to whole buckets. */
export function resolveWindow(wish: WindowQuery, now: number): BillingWindow {
  const { bucketSize } = wish;
  const [start, end] = wish.lastN === undefined ? fromInstants(wish, now) : fromLast(wish, wish.lastN, now);
  // Counted by the shortest that a bucket can be, before any is made.
  const most = Math.ceil(
    (end - start) / (bucketAfter(bucketSize, bucketStart(bucketSize, 0)) - bucketStart(bucketSize, 0)),
  );
  if (most > MAX_BUCKETS)
    throw ruleError(
      `that are about ${most} buckets of one ${bucketSize}, and at most ${MAX_BUCKETS} are answered; ` +
        'ask for a shorter time or for larger buckets',
    );
  return { bucketSize, start, end, buckets: bucketsBetween(bucketSize, start, end) };
}

function fromInstants({ startTime, endTime, bucketSize }: WindowQuery, now: number): [number, number] {
  const end = endTime === undefined ? now : instant('endTime', endTime);
  const start =
    startTime === undefined
      ? Math.max(MIN_TIME, end - DEFAULT_DAYS * DAY_MS)
      : instant('startTime', startTime);
  if (start > end)
    throw ruleError(
      endTime === undefined
        ? `startTime ${startTime} is in the future, and endTime is now by default; give an earlier startTime`
        : `endTime ${endTime} is before startTime ${startTime ?? ''}; exchange them`,
    );
  const first = bucketStart(bucketSize, Math.floor(start / 1000));
  const last = bucketStart(bucketSize, Math.ceil(end / 1000));
  const isOnEdge = last === Math.ceil(end / 1000) && last > first;
  return [first, isOnEdge ? last : bucketAfter(bucketSize, last)];
}

function fromLast(
  { startTime, endTime, bucketSize }: WindowQuery,
  count: number,
  now: number,
): [number, number] {
  if (startTime !== undefined || endTime !== undefined)
    throw ruleError('lastN takes the place of startTime and endTime; give one or the other, not both');
  if (!Number.isSafeInteger(count) || count < 1)
    throw ruleError(`lastN must be a whole number of at least 1, got ${count}`);
  if (count > MAX_BUCKETS) throw ruleError(`lastN must be at most ${MAX_BUCKETS}, got ${count}`);
  const present = bucketStart(bucketSize, Math.floor(now / 1000));
  return [
    Math.max(bucketStart(bucketSize, 0), bucketAfter(bucketSize, present, 1 - count)),
    bucketAfter(bucketSize, present),
  ];
}

function instant(name: string, text: string): number {
  const at = Date.parse(text);
  if (Number.isNaN(at))
    throw ruleError(
      `${name} must be an instant such as 2026-01-31T00:00:00Z, got ${JSON.stringify(text.slice(0, 64))}`,
    );
  if (at < MIN_TIME || at > MAX_TIME) throw ruleError(`${name} must lie between 1970 and 9998, got ${text}`);
  return at;
}
