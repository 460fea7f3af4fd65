const MIN_INTERVAL_MS = 500;

/** Measures how many cores are busy between two updates, from the total CPU time. */
export class CpuMeter {
  #cpuSeconds: number;
  #at: number;
  #cpu = 0;

  constructor(cpuSeconds: number, at: number) {
    this.#cpuSeconds = cpuSeconds;
    this.#at = at;
  }

  /**
   * Within the minimum interval the last value is returned: over ten milliseconds, the work of a start would
   * look like many cores.
   */
  update(cpuSeconds: number, at: number): number {
    const span = at - this.#at;
    if (span >= MIN_INTERVAL_MS) this.#cpu = Math.max(0, cpuSeconds - this.#cpuSeconds) / (span / 1000);
    // A clock that was set back restarts the measurement.
    if (span >= MIN_INTERVAL_MS || span < 0) {
      this.#cpuSeconds = cpuSeconds;
      this.#at = at;
    }
    return this.#cpu;
  }
}
