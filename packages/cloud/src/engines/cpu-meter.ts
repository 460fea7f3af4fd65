const MIN_INTERVAL_MS = 500;

/** How many processors something keeps busy between one look and the next, by what it has used in all. */
export class CpuMeter {
  #cpuSeconds: number;
  #at: number;
  #cpu = 0;

  constructor(cpuSeconds: number, at: number) {
    this.#cpuSeconds = cpuSeconds;
    this.#at = at;
  }

  /** A look too soon after the last one gets the same answer: the work of a start, over ten milliseconds, looks like many processors. */
  update(cpuSeconds: number, at: number): number {
    const span = at - this.#at;
    if (span >= MIN_INTERVAL_MS) this.#cpu = Math.max(0, cpuSeconds - this.#cpuSeconds) / (span / 1000);
    // A clock that was set back begins anew.
    if (span >= MIN_INTERVAL_MS || span < 0) {
      this.#cpuSeconds = cpuSeconds;
      this.#at = at;
    }
    return this.#cpu;
  }
}
