/** Prefetched jobs should start within this time. */
const START_WITHIN_MS = 20;
/**
 * With 400, one worker drained a queue on PostgreSQL a ninth slower: there were fewer jobs in each commit. It is
 * reached only by jobs of a millisecond or two at a concurrency of 100.
 */
const MAX_TAKE_AHEAD = 1_000;
/** The longest of this many recent jobs predicts how long the next ones take. */
const SAMPLE_SIZE = 32;

/**
 * How many jobs a worker prefetches beyond its free slots. Where jobs are shorter than the round trip to the
 * server, a worker without prefetch would mostly wait. Where they are longer, none are prefetched: another
 * worker may be free for them. One job that is longer than the earlier ones stops the prefetch.
 */
export class TakeAheadEstimator {
  #longest = Infinity;
  #longestOfThese = 0;
  #count = 0;

  /** A job has ended, with its duration. */
  recordDuration(milliseconds: number): void {
    this.#longestOfThese = Math.max(this.#longestOfThese, milliseconds);
    this.#longest = Math.max(this.#longest, milliseconds);
    this.#count += 1;
    if (this.#count < SAMPLE_SIZE) return;
    this.#longest = this.#longestOfThese;
    this.#longestOfThese = 0;
    this.#count = 0;
  }

  /** Discards the measurements: jobs did not start in time. */
  reset(): void {
    this.#longest = Infinity;
    this.#longestOfThese = 0;
    this.#count = 0;
  }

  limit(concurrency: number): number {
    return Math.floor(Math.min(MAX_TAKE_AHEAD, (concurrency * START_WITHIN_MS) / this.#longest));
  }
}
