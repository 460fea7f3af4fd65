import { FIELD, FIELDS } from '../domain/packed-sums.ts';
import type { PackedSums } from '../domain/packed-sums.ts';
import { firstBucketEndingAfter } from '../domain/time-buckets.ts';
import type { Bucket } from '../domain/time-buckets.ts';
import { COST_PARTS, type RollupSlice, type UsageState, type UsageTotal } from '../domain/usage-records.ts';

const DAY = 86_400;
const EXACT_DAY = 86_400n;
const [FITS, WHOLE] = [2 ** 62, 2 ** 64];

/**
 * Totals the usage of groups from the changes of their rates, one group after the other.
 *
 * Amounts are counted twice: exactly in 64 bits, which may overflow but allocates nothing, and
 * approximately in a floating-point number. Together they give exact amounts of any size.
 */
export class UsageAggregator {
  readonly totals: UsageTotal[] = [];
  readonly #buckets: readonly Bucket[];
  readonly #from: number;
  readonly #end: number;
  readonly #rates = new Float64Array(COST_PARTS.length);
  readonly #exactRates = new BigInt64Array(COST_PARTS.length);
  /** Amounts in the current bucket, approximate and exact modulo 2^64. */
  readonly #approximate = new Float64Array(COST_PARTS.length);
  readonly #exact = new BigInt64Array(COST_PARTS.length);
  #group = '';
  #runs = 0;
  #diskInGb = 0;
  /** Everything before this second is counted. */
  #at = 0;
  /** The current bucket; -1 before the first. */
  #index = 0;
  /** Whether the current bucket has usage or changes. */
  #isTouched = false;
  #seconds = 0;
  #diskInBucket = 0;

  /** Counts from the second `from`, where the changes begin, up to `end`. */
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

  /** Counts up to a second, bucket by bucket. */
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
      this.#approximate[part] = (this.#approximate[part] ?? 0) + rate * seconds;
      this.#exact[part] = BigInt.asIntN(
        64,
        (this.#exact[part] ?? 0n) + BigInt.asIntN(64, (this.#exactRates[part] ?? 0n) * exactSeconds),
      );
    }
    this.#seconds += this.#runs * seconds;
  }

  /** Applies the changes of an hour, a day or a month that begins now. */
  #change(rows: PackedSums, row: number): void {
    if (this.#buckets[this.#index] !== undefined) this.#subtractLateParts(rows, row);
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

  #subtractLateParts(rows: PackedSums, row: number): void {
    this.#touch();
    this.#seconds -= rows.toNumber(row, FIELD.runsLate);
    this.#diskInBucket += rows.toNumber(row, FIELD.addedInGb);
    for (let part = 0; part < COST_PARTS.length; part += 1) {
      const late = rows.toNumber(row, FIELD.late + part);
      if (late === 0) continue;
      this.#approximate[part] = (this.#approximate[part] ?? 0) - late;
      this.#exact[part] = BigInt.asIntN(
        64,
        (this.#exact[part] ?? 0n) - rows.toBigInt(row, FIELD.late + part),
      );
    }
    if (rows.fields === FIELDS) return;
    for (let part = 0; part < COST_PARTS.length; part += 1) {
      this.#approximate[part] =
        (this.#approximate[part] ?? 0) - rows.toNumber(row, FIELD.lateDays + part) * DAY;
      this.#exact[part] = BigInt.asIntN(
        64,
        (this.#exact[part] ?? 0n) - BigInt.asIntN(64, rows.toBigInt(row, FIELD.lateDays + part) * EXACT_DAY),
      );
    }
  }

  #touch(): void {
    if (this.#isTouched) return;
    this.#isTouched = true;
    // A loop over four elements is faster than fill().
    for (let part = 0; part < COST_PARTS.length; part += 1) {
      this.#approximate[part] = 0;
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
    const [exact, approximate] = [this.#exact[part] ?? 0n, this.#approximate[part] ?? 0];
    if (Math.abs(approximate) < FITS) return exact;
    return exact + BigInt(Math.round((approximate - Number(exact)) / WHOLE)) * BigInt(WHOLE);
  }
}
