import { PARTS } from '../store/ledger.ts';
import type { CostPart, Stretch, Sums, SumsRow } from '../store/ledger.ts';
import type { Bucket } from './buckets.ts';

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

/** The sums of a group as they go on from one change to the next. */
class Running {
  readonly group: string;
  readonly tallies: (Tally | undefined)[] = [];
  readonly rates = PARTS.map(() => 0);
  runs = 0;
  diskInGb = 0;
  /** Up to here all is counted. */
  at: number;
  /** The bucket that `at` is in; -1 before the first. */
  index: number;

  constructor(group: string, at: number, first: Bucket | undefined) {
    this.group = group;
    this.at = at;
    this.index = first !== undefined && at >= first.start ? 0 : -1;
  }

  get isIdle(): boolean {
    return this.runs === 0 && this.diskInGb === 0 && this.rates.every((rate) => rate === 0);
  }

  /** Counts up to an instant, bucket by bucket. */
  advance(to: number, buckets: readonly Bucket[]): void {
    if (this.at < to && this.isIdle) {
      this.at = to;
      this.index = to < (buckets[0]?.start ?? to) ? -1 : firstTouched(buckets, to);
    }
    while (this.at < to) {
      const bucket = buckets[this.index];
      const end = this.index < 0 ? (buckets[0]?.start ?? to) : (bucket?.end ?? to);
      const until = Math.min(to, end);
      if (bucket !== undefined) this.#use(this.tallyIn(bucket), until - this.at);
      this.at = until;
      if (until === end) this.index += 1;
    }
  }

  add({ rates, runs, diskInGb }: Pick<SumsRow, 'rates' | 'runs' | 'diskInGb'>): void {
    for (const [index, part] of PARTS.entries()) this.rates[index] = (this.rates[index] ?? 0) + rates[part];
    this.runs += runs;
    this.diskInGb += diskInGb;
  }

  /** What changed in an hour or a day that begins where this is. */
  change(row: SumsRow, buckets: readonly Bucket[]): void {
    const bucket = buckets[this.index];
    const tally = bucket === undefined ? undefined : this.tallyIn(bucket);
    this.add(row);
    if (tally === undefined) return;
    for (const part of PARTS) if (row.late[part] !== 0) tally.amounts[part] -= BigInt(row.late[part]);
    tally.seconds -= row.runsLate;
    tally.diskInGb += row.addedInGb;
  }

  tallyIn(bucket: Bucket): Tally {
    return (this.tallies[this.index] ??= emptyTally(this.group, bucket, this.diskInGb));
  }

  #use(tally: Tally, seconds: number): void {
    for (const [index, part] of PARTS.entries()) {
      const rate = this.rates[index] ?? 0;
      if (rate !== 0) tally.amounts[part] += BigInt(rate) * BigInt(seconds);
    }
    tally.seconds += this.runs * seconds;
  }
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
export function tallySums({ before, rows }: Pick<Sums, 'before' | 'rows'>, buckets: readonly Bucket[], { from, now, groupOf = (group) => group }: SumsReading): Tally[] {
  const groups = new Map<string, Running>();
  const runningOf = (group: string): Running => {
    let running = groups.get(group);
    if (running === undefined) {
      running = new Running(group, from, buckets[0]);
      groups.set(group, running);
    }
    return running;
  };
  for (const state of before) runningOf(groupOf(state.group)).add(state);
  let last = now;
  for (const row of rows) {
    const running = runningOf(groupOf(row.group));
    running.advance(row.bucket, buckets);
    running.change(row, buckets);
    // A clock that was set back does not take away what was written when it was ahead.
    if (row.lastAt > last) last = row.lastAt;
  }
  const end = Math.min(last, buckets.at(-1)?.end ?? from);
  for (const running of groups.values()) running.advance(end, buckets);
  return inOrder([...groups.values()].flatMap(({ tallies }) => tallies.filter((tally) => tally !== undefined && isUsed(tally)) as Tally[]));
}

/** The same, counted anew from the stretches themselves. */
export function tallyStretches(stretches: readonly Stretch[], buckets: readonly Bucket[], now: number, groupOf: (stretch: Stretch) => string): Tally[] {
  const tallies = new Map<string, Tally>();
  for (const stretch of stretches) {
    const group = groupOf(stretch);
    const end = stretch.endedAt ?? Math.max(now, stretch.beganAt);
    for (let index = firstTouched(buckets, stretch.beganAt); index < buckets.length; index += 1) {
      const bucket = buckets[index];
      // What ended when a bucket began was still held then.
      if (bucket === undefined || (stretch.endedAt === null ? bucket.start >= Math.max(end, stretch.beganAt + 1) : bucket.start > end)) break;
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

function inOrder(tallies: Tally[]): Tally[] {
  return tallies.sort((one, other) => one.start - other.start || (one.group < other.group ? -1 : one.group > other.group ? 1 : 0));
}

/** The first bucket that ends after a second. */
function firstTouched(buckets: readonly Bucket[], second: number): number {
  let [low, high] = [0, buckets.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((buckets[middle]?.end ?? Infinity) > second) high = middle;
    else low = middle + 1;
  }
  return low;
}
