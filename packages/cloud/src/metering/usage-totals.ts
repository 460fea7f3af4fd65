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
  /** Where the roll-ups begin. */
  from: number;
  /** What goes on is counted up to here. */
  now: number;
  /** Under what name a group is shown; several may have one. */
  groupOf?(group: string): string;
}

/** From the roll-ups. */
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
  for (const some of changes) {
    partsOf(some.group).changes.push(some);
    // A clock that was set back does not take away what was written when it was ahead.
    for (let row = some.from; row < some.to; row += 1)
      last = Math.max(last, some.rows.toNumber(row, FIELD.lastAt));
  }
  const end = Math.min(last, buckets.at(-1)?.end ?? from);
  const count = new UsageAggregator(buckets, from, end);
  const shown = new Set<string>();
  for (const [group, parts] of groups) {
    const name = groupOf(group);
    shown.add(name);
    count.add(name, parts.states, parts.changes);
  }
  const tallies = (shown.size === groups.size ? count.totals : mergeByName(count.totals)).filter(isUsed);
  return groups.size === 1 ? tallies : sortByTime(tallies);
}

/** The same, counted anew from the stretches themselves. */
export function totalsFromIntervals(
  stretches: readonly UsageInterval[],
  buckets: readonly Bucket[],
  now: number,
  groupOf: (stretch: UsageInterval) => string,
): UsageTotal[] {
  const tallies = new Map<string, UsageTotal>();
  for (const stretch of stretches) {
    const group = groupOf(stretch);
    const end = stretch.endedAt ?? Math.max(now, stretch.beganAt);
    for (let index = firstBucketEndingAfter(buckets, stretch.beganAt); index < buckets.length; index += 1) {
      const bucket = buckets[index];
      // What ended when a bucket began was still held then.
      if (
        bucket === undefined ||
        (stretch.endedAt === null ? bucket.start >= Math.max(end, stretch.beganAt + 1) : bucket.start > end)
      )
        break;
      const key = `${bucket.start} ${group}`;
      let tally = tallies.get(key);
      if (tally === undefined) {
        tally = emptyTotal(group, bucket, 0);
        tallies.set(key, tally);
      }
      const seconds = Math.max(0, Math.min(end, bucket.end) - Math.max(stretch.beganAt, bucket.start));
      for (const part of COST_PARTS) tally.amounts[part] += BigInt(stretch.rates[part]) * BigInt(seconds);
      if (stretch.isRunning) tally.seconds += seconds;
      tally.diskInGb += stretch.beganAt >= bucket.start ? stretch.addedInGb : stretch.diskInGb;
    }
  }
  return sortByTime([...tallies.values()].filter(isUsed));
}

function emptyTotal(group: string, { start, end }: Bucket, diskInGb: number): UsageTotal {
  return { group, start, end, amounts: { gpu: 0n, cpu: 0n, disk: 0n, fastDisk: 0n }, seconds: 0, diskInGb };
}

/** What was used at price zero was used. */
function isUsed({ amounts, seconds, diskInGb }: UsageTotal): boolean {
  return seconds > 0 || diskInGb > 0 || COST_PARTS.some((part) => amounts[part] > 0n);
}

/** Groups that are shown under one name become one. */
function mergeByName(tallies: readonly UsageTotal[]): UsageTotal[] {
  const byName = new Map<string, UsageTotal>();
  for (const tally of tallies) {
    const key = `${tally.start} ${tally.group}`;
    const sum = byName.get(key);
    if (sum === undefined) {
      byName.set(key, tally);
      continue;
    }
    for (const part of COST_PARTS) sum.amounts[part] += tally.amounts[part];
    sum.seconds += tally.seconds;
    sum.diskInGb += tally.diskInGb;
  }
  return [...byName.values()];
}

function sortByTime(tallies: UsageTotal[]): UsageTotal[] {
  return tallies.sort(
    (one, other) =>
      one.start - other.start || (one.group < other.group ? -1 : one.group > other.group ? 1 : 0),
  );
}
