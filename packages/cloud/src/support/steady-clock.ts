import type { Clock } from './clock.ts';
import { systemClock } from './clock.ts';

/** Two readings that disagree by more than this show that a clock was set. Less is drift. */
export const CLOCK_STEP_MS = 2_000;
/**
 * How fast time catches up with a clock that was set: one hour takes eight days. A timeout of ten minutes
 * ends at most three seconds early or late meanwhile.
 */
export const SLEW_RATE = 0.005;

/**
 * Time that never jumps. It advances with the monotonic clock, and approaches a reference clock (the one of
 * this machine, or of the shared database) so slowly that nothing ends noticeably early. Setting the
 * reference an hour ahead therefore ends no job, and setting it back freezes none.
 */
export class SteadyClock implements Clock {
  readonly #source: Required<Pick<Clock, 'now' | 'monotonic'>>;
  /** At this monotonic time … */
  #since: number;
  /** … it was this time, … */
  #time: number;
  /** … and the reference was this much ahead. */
  #ahead = 0;

  constructor(source: Required<Pick<Clock, 'now' | 'monotonic'>> = systemClock) {
    this.#source = source;
    this.#since = source.monotonic();
    this.#time = source.now();
  }

  now(): number {
    return Math.floor(this.#exact(this.#source.monotonic()));
  }

  monotonic(): number {
    return this.#source.monotonic();
  }

  wall(): number {
    return this.#source.now();
  }

  /** How much the reference is ahead of this clock, in milliseconds. */
  get ahead(): number {
    const passed = this.#source.monotonic() - this.#since;
    return this.#ahead - slewed(this.#ahead, passed);
  }

  /**
   * Compares with the reference. Answers by how much the reference was set since the last time; 0 for drift.
   */
  observe(reference: number): number {
    const expected = this.ahead;
    const monotonic = this.#source.monotonic();
    this.#time = this.#exact(monotonic);
    this.#since = monotonic;
    this.#ahead = reference - this.#time;
    const step = this.#ahead - expected;
    return Math.abs(step) > CLOCK_STEP_MS ? Math.round(step) : 0;
  }

  /** Sets this clock. Only where nothing depends on it that the jump would end. */
  set(time: number): void {
    const reference = this.now() + this.ahead;
    this.#since = this.#source.monotonic();
    this.#time = time;
    this.#ahead = reference - time;
  }

  #exact(monotonic: number): number {
    const passed = monotonic - this.#since;
    return this.#time + passed + slewed(this.#ahead, passed);
  }
}

function slewed(ahead: number, passed: number): number {
  const most = passed * SLEW_RATE;
  return Math.max(-most, Math.min(most, ahead));
}
