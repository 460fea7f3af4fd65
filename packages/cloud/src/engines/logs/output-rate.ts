const SECOND_MS = 1000;

/** How fast output may be logged: so many bytes per second, after a burst. */
export class OutputRate {
  readonly #bytesPerSecond: number;
  readonly #burstBytes: number;
  #allowance: number;
  #at = -Infinity;

  constructor(bytesPerSecond: number, burstBytes: number) {
    this.#bytesPerSecond = bytesPerSecond;
    this.#burstBytes = Math.max(burstBytes, bytesPerSecond);
    this.#allowance = this.#burstBytes;
  }

  add(bytes: number, now: number): void {
    this.#refill(now);
    this.#allowance -= bytes;
  }

  /**
   * How long to wait. Once exceeded, until there is room for a second's worth: a pause per second, not per
   * line.
   */
  waitMs(now: number): number {
    this.#refill(now);
    if (this.#allowance > 0) return 0;
    return Math.ceil(((this.#bytesPerSecond - this.#allowance) * SECOND_MS) / this.#bytesPerSecond);
  }

  #refill(now: number): void {
    const elapsed = Math.max(0, now - this.#at);
    this.#allowance = Math.min(
      this.#burstBytes,
      this.#allowance + (elapsed * this.#bytesPerSecond) / SECOND_MS,
    );
    this.#at = now;
  }
}
