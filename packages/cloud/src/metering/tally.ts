import { PARTS } from '../store/ledger.ts';
import type { Changes, CostPart, Stretch, Sums, UseState } from '../store/ledger.ts';
import { FIELD } from '../store/packed-sums.ts';
import { firstTouched } from './buckets.ts';
import type { Bucket } from './buckets.ts';
import { GroupCount } from './group-count.ts';

/** What one group used in one bucket. */
export interface Tally extends Bucket {
  group: string;
  /** Rate times seconds. */
  amounts: Record<CostPart, bigint>;
  /** Of what ran. */
  seconds: number;
  /** Disk that was held when the bucket began, and what was added in it. */
  diskInGb: number;
}

export interface SumsReading {
  /** Where the roll-ups begin. */
  from: number;
  /** What goes on is counted up to here. */
  now: number;
  /** Under what name a group is shown; several may have one. */
  groupOf?(group: string): string;
}

/** From the roll-ups. */
export function tallySums(
  { before, changes }: Pick<Sums, 'before' | 'changes'>,
  buckets: readonly Bucket[],
  { from, now, groupOf = (group) => group }: SumsReading,
): Tally[] {
  const groups = new Map<string, { states: UseState[]; changes: Changes[] }>();
  const partsOf = (group: string): { states: UseState[]; changes: Changes[] } => {
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
      last = Math.max(last, some.rows.number(row, FIELD.lastAt));
  }
  const end = Math.min(last, buckets.at(-1)?.end ?? from);
  const count = new GroupCount(buckets, from, end);
  const shown = new Set<string>();
  for (const [group, parts] of groups) {
    const name = groupOf(group);
    shown.add(name);
    count.add(name, parts.states, parts.changes);
  }
  const tallies = (shown.size === groups.size ? count.tallies : together(count.tallies)).filter(isUsed);
  return groups.size === 1 ? tallies : inOrder(tallies);
}

/** The same, counted anew from the stretches themselves. */
export function tallyStretches(
  stretches: readonly Stretch[],
  buckets: readonly Bucket[],
  now: number,
  groupOf: (stretch: Stretch) => string,
): Tally[] {
  const tallies = new Map<string, Tally>();
  for (const stretch of stretches) {
    const group = groupOf(stretch);
    const end = stretch.endedAt ?? Math.max(now, stretch.beganAt);
    for (let index = firstTouched(buckets, stretch.beganAt); index < buckets.length; index += 1) {
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
        tally = emptyTally(group, bucket, 0);
        tallies.set(key, tally);
      }
      const seconds = Math.max(0, Math.min(end, bucket.end) - Math.max(stretch.beganAt, bucket.start));
      for (const part of PARTS) tally.amounts[part] += BigInt(stretch.rates[part]) * BigInt(seconds);
      if (stretch.runs) tally.seconds += seconds;
      tally.diskInGb += stretch.beganAt >= bucket.start ? stretch.addedInGb : stretch.diskInGb;
    }
  }
  return inOrder([...tallies.values()].filter(isUsed));
}

function emptyTally(group: string, { start, end }: Bucket, diskInGb: number): Tally {
  return { group, start, end, amounts: { gpu: 0n, cpu: 0n, disk: 0n, fastDisk: 0n }, seconds: 0, diskInGb };
}

/** What was used at price zero was used. */
function isUsed({ amounts, seconds, diskInGb }: Tally): boolean {
  return seconds > 0 || diskInGb > 0 || PARTS.some((part) => amounts[part] > 0n);
}

/** Groups that are shown under one name become one. */
function together(tallies: readonly Tally[]): Tally[] {
  const byName = new Map<string, Tally>();
  for (const tally of tallies) {
    const key = `${tally.start} ${tally.group}`;
    const sum = byName.get(key);
    if (sum === undefined) {
      byName.set(key, tally);
      continue;
    }
    for (const part of PARTS) sum.amounts[part] += tally.amounts[part];
    sum.seconds += tally.seconds;
    sum.diskInGb += tally.diskInGb;
  }
  return [...byName.values()];
}

function inOrder(tallies: Tally[]): Tally[] {
  return tallies.sort(
    (one, other) =>
      one.start - other.start || (one.group < other.group ? -1 : one.group > other.group ? 1 : 0),
  );
}
