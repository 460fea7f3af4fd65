import type { Log } from '../support/log.ts';
import type { JobReaper } from './job-reaper.ts';

const SWEEP_INTERVAL_MS = 500;
/**
 * A sweep that starts this much too late shows that the whole process was paused: stopped, or on a machine
 * that slept.
 */
const PROCESS_SUSPENDED_MS = 5_000;

/** Sweeps due jobs once or twice a second, and continues while there are more. */
export class JobReaperLoop {
  readonly #reaper: JobReaper;
  readonly #log: Log;
  readonly #intervalMs: number;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(reaper: JobReaper, log: Log, intervalMs = SWEEP_INTERVAL_MS) {
    this.#reaper = reaper;
    this.#log = log;
    this.#intervalMs = intervalMs;
  }

  start(): void {
    const due = performance.now() + this.#intervalMs;
    this.#timer = setTimeout(() => {
      if (performance.now() - due > PROCESS_SUSPENDED_MS) this.#reaper.onProcessResumed();
      this.#running = this.#round().finally(() => {
        if (!this.#closed) this.start();
      });
    }, this.#intervalMs);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  async #round(): Promise<void> {
    try {
      let mayHaveMore = true;
      while (mayHaveMore && !this.#closed) {
        mayHaveMore = await this.#reaper.sweepDue();
        await this.#reaper.sweepLost();
        if (mayHaveMore) await new Promise((resolve) => setImmediate(resolve));
      }
    } catch (error) {
      this.#log.warn({ err: error }, 'due jobs could not be processed; trying again');
    }
  }
}
