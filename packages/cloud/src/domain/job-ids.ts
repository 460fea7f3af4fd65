import { randomBytes } from 'node:crypto';
import type { Clock } from '../support/clock.ts';

/**
 * A job's number counts up with time: milliseconds since 2026, then a counter. It orders the
 * queue, and it is part of the job's public id, so that finding a job by its id needs no
 * index of its own. The rest of the id is random: nobody finds a job by counting.
 */
const EPOCH = Date.UTC(2026, 0, 1);
const PER_MILLISECOND = 4096;
/** Several servers may count in the same millisecond; each starts somewhere in the lower half. */
const MAX_FIRST_COUNT = 2048;

export class JobSequence {
  readonly #clock: Clock;
  #millisecond = 0;
  #count = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Goes on behind a number that was given before, whatever the clock says now. */
  resumeAfter(seq: number): void {
    const count = seq % PER_MILLISECOND;
    const millisecond = (seq - count) / PER_MILLISECOND;
    if (millisecond < this.#millisecond || (millisecond === this.#millisecond && count <= this.#count))
      return;
    this.#millisecond = millisecond;
    this.#count = count;
  }

  /** Never the same twice, never smaller than before, also when the clock is set back. */
  next(): number {
    const now = Math.max(0, this.#clock.now() - EPOCH);
    if (now > this.#millisecond) {
      this.#millisecond = now;
      this.#count = Math.floor(Math.random() * MAX_FIRST_COUNT);
    } else if (this.#count + 1 < PER_MILLISECOND) {
      this.#count += 1;
    } else {
      this.#millisecond += 1;
      this.#count = 0;
    }
    return this.#millisecond * PER_MILLISECOND + this.#count;
  }
}

/** The lowest number of a job that was created at this time. */
export function firstSeqAt(time: number): number {
  return Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, Math.floor(time) - EPOCH) * PER_MILLISECOND);
}

const SYNC_PREFIX = 'sync-';
const SUFFIX = '-u1';
const RANDOM_BYTES = 8;
const RANDOM_POOL_BYTES = 4096;
const RANDOM_DIGITS = 2 * RANDOM_BYTES;

let pool = '';
let used = 0;

/**
 * Random digits come from a pool: asking the system for a few at a time costs more than the rest of the id.
 */
function randomHex(): string {
  if (used + RANDOM_DIGITS > pool.length) {
    pool = randomBytes(RANDOM_POOL_BYTES).toString('hex');
    used = 0;
  }
  used += RANDOM_DIGITS;
  return pool.slice(used - RANDOM_DIGITS, used);
}

let lastMillisecond = -1;
let lastDigits = '';

/** The digits that jobs of one millisecond have in common. */
function millisecondDigits(millisecond: number): string {
  if (millisecond !== lastMillisecond) {
    const digits = millisecond.toString(16).padStart(12, '0');
    lastMillisecond = millisecond;
    lastDigits = `${digits.slice(0, 8)}-${digits.slice(8)}-8`;
  }
  return lastDigits;
}

/** A UUID of version 8 (free form) and a suffix; synchronous jobs begin with `sync-`. */
export function newJobId(seq: number, sync: boolean): string {
  const count = seq % PER_MILLISECOND;
  const counter = (PER_MILLISECOND + count).toString(16).slice(1);
  const number = `${millisecondDigits((seq - count) / PER_MILLISECOND)}${counter}`;
  const random = randomHex();
  const variant = '89ab'[Number.parseInt(random.charAt(0), 16) & 3];
  return `${sync ? SYNC_PREFIX : ''}${number}-${variant}${random.slice(1, 4)}-${random.slice(4)}${SUFFIX}`;
}

const JOB_ID = /^(?:sync-)?[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}-u1$/;

/** The number inside an id; undefined for a text that is no id of ours. */
export function seqFromJobId(id: string): number | undefined {
  if (!JOB_ID.test(id)) return undefined;
  const from = id.startsWith(SYNC_PREFIX) ? SYNC_PREFIX.length : 0;
  const hex = (start: number, end: number): number => Number.parseInt(id.slice(from + start, from + end), 16);
  const seq = (hex(0, 8) * 2 ** 16 + hex(9, 13)) * 2 ** 12 + hex(15, 18);
  return Number.isSafeInteger(seq) ? seq : undefined;
}

/** The token of a lease. */
export function newLeaseToken(): string {
  return randomHex();
}
