import { FIELD, FIELDS } from '../domain/packed-sums.ts';
import type { PackedSums } from '../domain/packed-sums.ts';
import { firstBucketEndingAfter } from '../domain/time-buckets.ts';
import type { Bucket } from '../domain/time-buckets.ts';
import { COST_PARTS, type RollupSlice, type UsageState, type UsageTotal } from '../domain/usage-records.ts';

const DAY = 86_400;
const EXACT_DAY = 86_400n;
const [FITS, WHOLE] = [2 ** 62, 2 ** 64];

/**
 * Counts what groups used from the changes of their use, one group after the other.
 *
 * Amounts are counted twice: exactly, but in 64 bits that may overflow, which costs no object for
 * each step; and about, in a number that has no end. Together they are exact without an end.
 */
export class UsageAggregator {
  readonly totals: UsageTotal[] = [];
  readonly #buckets: readonly Bucket[];
  readonly #from: number;
  readonly #end: number;
  readonly #rates = new Float64Array(COST_PARTS.length);
  readonly #exactRates = new BigInt64Array(COST_PARTS.length);
  /** Of the bucket that it is in. */
  readonly #about = new Float64Array(COST_PARTS.length);
  readonly #exact = new BigInt64Array(COST_PARTS.length);
  #group = '';
  #runs = 0;
  #diskInGb = 0;
  /** Up to here all is counted. */
  #at = 0;
  /** The bucket that this instant is in; -1 before the first. */
  #index = 0;
  /** Something was used or changed in that bucket. */
  #isTouched = false;
  #seconds = 0;
  #diskInBucket = 0;

  /** Counts up to an end, from where the changes begin. */
  constructor(buckets: readonly Bucket[], from: number, end: number) {
    this.#buckets = buckets;
    this.#from = from;
    this.#end = end;
  }

  add(group: string, states: readonly UsageState[], changes: readonly RollupSlice[]): void {
    this.#start(group, states);
    for (const { rows, from, to } of changes) {
      for (let row = from; row < to; row += 1) {
        this.#advance(rows.toNumber(row, FIELD.bucket));
        this.#change(rows, row);
      }
    }
    this.#advance(this.#end);
    this.#leaveBucket();
  }

  #start(group: string, states: readonly UsageState[]): void {
    this.#group = group;
    this.#rates.fill(0);
    this.#exactRates.fill(0n);
    this.#runs = 0;
    this.#diskInGb = 0;
    this.#at = this.#from;
    const first = this.#buckets[0];
    this.#index = first !== undefined && this.#from >= first.start ? 0 : -1;
    for (const { rates, runs, diskInGb } of states) {
      for (const [index, part] of COST_PARTS.entries()) {
        this.#rates[index] = (this.#rates[index] ?? 0) + rates[part];
        this.#exactRates[index] = (this.#exactRates[index] ?? 0n) + BigInt(rates[part]);
      }
      this.#runs += runs;
      this.#diskInGb += diskInGb;
    }
  }

  /** Counts up to an instant, bucket by bucket. */
  #advance(to: number): void {
    if (this.#at < to && this.#isIdle()) {
      this.#at = to;
      this.#enterBucket(
        to < (this.#buckets[0]?.start ?? to) ? -1 : firstBucketEndingAfter(this.#buckets, to),
      );
    }
    while (this.#at < to) {
      const bucket = this.#buckets[this.#index];
      const end = this.#index < 0 ? (this.#buckets[0]?.start ?? to) : (bucket?.end ?? to);
      const until = Math.min(to, end);
      if (bucket !== undefined) this.#use(until - this.#at);
      this.#at = until;
      if (until === end) this.#enterBucket(this.#index + 1);
    }
  }

  #isIdle(): boolean {
    if (this.#runs !== 0 || this.#diskInGb !== 0) return false;
    for (let part = 0; part < COST_PARTS.length; part += 1) if (this.#rates[part] !== 0) return false;
    return true;
  }

  #use(seconds: number): void {
    this.#touch();
    const exactSeconds = BigInt(seconds);
    for (let part = 0; part < COST_PARTS.length; part += 1) {
      const rate = this.#rates[part] ?? 0;
      if (rate === 0) continue;
      this.#about[part] = (this.#about[part] ?? 0) + rate * seconds;
      this.#exact[part] = BigInt.asIntN(
        64,
        (this.#exact[part] ?? 0n) + BigInt.asIntN(64, (this.#exactRates[part] ?? 0n) * exactSeconds),
      );
    }
    this.#seconds += this.#runs * seconds;
  }

  /** What changed in an hour, a day or a month that begins where this is. */
  #change(rows: PackedSums, row: number): void {
    if (this.#buckets[this.#index] !== undefined) this.#beLate(rows, row);
    for (let part = 0; part < COST_PARTS.length; part += 1) {
      const rate = rows.toNumber(row, FIELD.rate + part);
      if (rate === 0) continue;
      this.#rates[part] = (this.#rates[part] ?? 0) + rate;
      this.#exactRates[part] = BigInt.asIntN(
        64,
        (this.#exactRates[part] ?? 0n) + rows.toBigInt(row, FIELD.rate + part),
      );
    }
    this.#runs += rows.toNumber(row, FIELD.runs);
    this.#diskInGb += rows.toNumber(row, FIELD.diskInGb);
  }

  #beLate(rows: PackedSums, row: number): void {
    this.#touch();
    this.#seconds -= rows.toNumber(row, FIELD.runsLate);
    this.#diskInBucket += rows.toNumber(row, FIELD.addedInGb);
    for (let part = 0; part < COST_PARTS.length; part += 1) {
      const late = rows.toNumber(row, FIELD.late + part);
      if (late === 0) continue;
      this.#about[part] = (this.#about[part] ?? 0) - late;
      this.#exact[part] = BigInt.asIntN(
        64,
        (this.#exact[part] ?? 0n) - rows.toBigInt(row, FIELD.late + part),
      );
    }
    if (rows.fields === FIELDS) return;
    for (let part = 0; part < COST_PARTS.length; part += 1) {
      this.#about[part] = (this.#about[part] ?? 0) - rows.toNumber(row, FIELD.lateDays + part) * DAY;
      this.#exact[part] = BigInt.asIntN(
        64,
        (this.#exact[part] ?? 0n) - BigInt.asIntN(64, rows.toBigInt(row, FIELD.lateDays + part) * EXACT_DAY),
      );
    }
  }

  #touch(): void {
    if (this.#isTouched) return;
    this.#isTouched = true;
    // Four of them are quicker than a call of fill().
    for (let part = 0; part < COST_PARTS.length; part += 1) {
      this.#about[part] = 0;
      this.#exact[part] = 0n;
    }
    this.#seconds = 0;
    this.#diskInBucket = this.#diskInGb;
  }

  #enterBucket(index: number): void {
    if (index === this.#index) return;
    this.#leaveBucket();
    this.#index = index;
  }

  #leaveBucket(): void {
    const bucket = this.#buckets[this.#index];
    if (this.#isTouched && bucket !== undefined) {
      const amounts = {
        gpu: this.#amount(0),
        cpu: this.#amount(1),
        disk: this.#amount(2),
        fastDisk: this.#amount(3),
      };
      this.totals.push({
        group: this.#group,
        start: bucket.start,
        end: bucket.end,
        amounts,
        seconds: this.#seconds,
        diskInGb: this.#diskInBucket,
      });
    }
    this.#isTouched = false;
  }

  #amount(part: number): bigint {
    const [exact, about] = [this.#exact[part] ?? 0n, this.#about[part] ?? 0];
    if (Math.abs(about) < FITS) return exact;
    return exact + BigInt(Math.round((about - Number(exact)) / WHOLE)) * BigInt(WHOLE);
  }
}
