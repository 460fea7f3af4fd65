import type { Clock } from '../../support/clock.ts';

/** Times are rounded up to this, so that a thousand of them need few wake-ups. */
const ROUND_UP_MS = 100;

/** One timer for all known due times, and for a periodic check besides. */
export class DueTimer {
  readonly #clock: Clock;
  readonly #checkEveryMs: number;
  readonly #onDue: () => void;
  readonly #moments = new Set<number>();
  #timer: NodeJS.Timeout | undefined;
  #timerAt = Infinity;
  #closed = false;

  constructor(clock: Clock, checkEveryMs: number, onDue: () => void) {
    this.#clock = clock;
    this.#checkEveryMs = checkEveryMs;
    this.#onDue = onDue;
  }

  start(): void {
    this.#set();
  }

  add(at: number): void {
    const moment = Math.ceil(at / ROUND_UP_MS) * ROUND_UP_MS;
    this.#moments.add(moment);
    if (moment < this.#timerAt) this.#set();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  #set(): void {
    if (this.#closed) return;
    clearTimeout(this.#timer);
    const now = this.#clock.now();
    this.#timerAt = Math.min(now + this.#checkEveryMs, ...this.#moments);
    this.#timer = setTimeout(() => this.#fire(), Math.max(0, this.#timerAt - now));
    this.#timer.unref();
  }

  #fire(): void {
    const now = this.#clock.now();
    for (const moment of this.#moments) if (moment <= now) this.#moments.delete(moment);
    this.#set();
    this.#onDue();
  }
}
