export interface RequestPaceOptions {
  perSecond: number;
  /** So many may go at once after a rest. */
  burst: number;
}

/** Bounds the requests per second: each is given the time at which it may go, in order. */
export class RequestPace {
  readonly #intervalMs: number;
  readonly #burst: number;
  /** When the next one would go at the steady rate. */
  #nextAt = -Infinity;

  constructor({ perSecond, burst }: RequestPaceOptions) {
    this.#intervalMs = 1000 / perSecond;
    this.#burst = burst;
  }

  /** How long the next request has to wait; it counts as sent. */
  waitMs(now: number): number {
    const earliest = now - (this.#burst - 1) * this.#intervalMs;
    const at = Math.max(this.#nextAt, earliest);
    this.#nextAt = at + this.#intervalMs;
    return Math.max(0, at - now);
  }
}
