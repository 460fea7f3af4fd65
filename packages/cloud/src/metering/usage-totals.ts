import { FIELD } from '../domain/packed-sums.ts';
import { firstBucketEndingAfter } from '../domain/time-buckets.ts';
import type { Bucket } from '../domain/time-buckets.ts';
import { UsageAggregator } from './usage-aggregator.ts';
import {
  COST_PARTS,
  type RollupSlice,
  type UsageInterval,
  type UsageRollup,
  type UsageState,
  type UsageTotal,
} from '../domain/usage-records.ts';

export interface RollupOptions {
  /** The second at which the roll-ups begin. */
  from: number;
  /** Running usage is counted up to this second. */
  now: number;
  /** The name under which a group is shown. Several groups may share one. */
  groupOf?(group: string): string;
}

/** Totals from roll-ups. */
export function totalsFromRollups(
  { before, changes }: Pick<UsageRollup, 'before' | 'changes'>,
  buckets: readonly Bucket[],
  { from, now, groupOf = (group) => group }: RollupOptions,
): UsageTotal[] {
  const groups = new Map<string, { states: UsageState[]; changes: RollupSlice[] }>();
  const partsOf = (group: string): { states: UsageState[]; changes: RollupSlice[] } => {
    let parts = groups.get(group);
    if (parts === undefined) groups.set(group, (parts = { states: [], changes: [] }));
    return parts;
  };
  for (const state of before) partsOf(state.group).states.push(state);
  let last = now;
  for (const slice of changes) {
    partsOf(slice.group).changes.push(slice);
    // A clock that was set back does not hide usage that was recorded before.
    for (let row = slice.from; row < slice.to; row += 1)
      last = Math.max(last, slice.rows.toNumber(row, FIELD.lastAt));
  }
  const end = Math.min(last, buckets.at(-1)?.end ?? from);
  const aggregator = new UsageAggregator(buckets, from, end);
  const shown = new Set<string>();
  for (const [group, parts] of groups) {
    const name = groupOf(group);
    shown.add(name);
    aggregator.add(name, parts.states, parts.changes);
  }
  const totals = (shown.size === groups.size ? aggregator.totals : mergeByName(aggregator.totals)).filter(
    isUsed,
  );
  return groups.size === 1 ? totals : sortByTime(totals);
}

/** The same totals, counted from intervals. */
export function totalsFromIntervals(
  intervals: readonly UsageInterval[],
  buckets: readonly Bucket[],
  now: number,
  groupOf: (interval: UsageInterval) => string,
): UsageTotal[] {
  const totals = new Map<string, UsageTotal>();
  for (const interval of intervals) {
    const group = groupOf(interval);
    const end = interval.endedAt ?? Math.max(now, interval.beganAt);
    for (let index = firstBucketEndingAfter(buckets, interval.beganAt); index < buckets.length; index += 1) {
      const bucket = buckets[index];
      // Disk that was released at the start of a bucket counts for that bucket.
      if (
        bucket === undefined ||
        (interval.endedAt === null ? bucket.start >= Math.max(end, interval.beganAt + 1) : bucket.start > end)
      )
        break;
      const key = `${bucket.start} ${group}`;
      let total = totals.get(key);
      if (total === undefined) {
        total = emptyTotal(group, bucket, 0);
        totals.set(key, total);
      }
      const seconds = Math.max(0, Math.min(end, bucket.end) - Math.max(interval.beganAt, bucket.start));
      for (const part of COST_PARTS) total.amounts[part] += BigInt(interval.rates[part]) * BigInt(seconds);
      if (interval.isRunning) total.seconds += seconds;
      total.diskInGb += interval.beganAt >= bucket.start ? interval.addedInGb : interval.diskInGb;
    }
  }
  return sortByTime([...totals.values()].filter(isUsed));
}

function emptyTotal(group: string, { start, end }: Bucket, diskInGb: number): UsageTotal {
  return { group, start, end, amounts: { gpu: 0n, cpu: 0n, disk: 0n, fastDisk: 0n }, seconds: 0, diskInGb };
}

/** Usage at price zero is usage. */
function isUsed({ amounts, seconds, diskInGb }: UsageTotal): boolean {
  return seconds > 0 || diskInGb > 0 || COST_PARTS.some((part) => amounts[part] > 0n);
}

/** Merges groups that are shown under one name. */
function mergeByName(totals: readonly UsageTotal[]): UsageTotal[] {
  const byName = new Map<string, UsageTotal>();
  for (const total of totals) {
    const key = `${total.start} ${total.group}`;
    const sum = byName.get(key);
    if (sum === undefined) {
      byName.set(key, total);
      continue;
    }
    for (const part of COST_PARTS) sum.amounts[part] += total.amounts[part];
    sum.seconds += total.seconds;
    sum.diskInGb += total.diskInGb;
  }
  return [...byName.values()];
}

function sortByTime(totals: UsageTotal[]): UsageTotal[] {
  return totals.sort(
    (one, other) =>
      one.start - other.start || (one.group < other.group ? -1 : one.group > other.group ? 1 : 0),
  );
}
