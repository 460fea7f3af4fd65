/** Jobs that are taken ahead shall begin within this time. */
const START_WITHIN_MS = 20;
/** More gain nothing. */
const MAX_TAKE_AHEAD = 400;
/** The longest of so many jobs says how long the next ones may take. */
const SAMPLE_SIZE = 32;

/**
 * How many jobs a worker takes beyond those that it can run now. Where jobs are shorter than the way to
 * the server and back, a worker without any would mostly wait. Where they are not, none are taken
 * ahead: another worker may be free for them. One job that takes longer than those before ends it.
 */
export class TakeAheadEstimator {
  #longest = Infinity;
  #longestOfThese = 0;
  #count = 0;

  /** A job has ended, so long after it began. */
  recordDuration(milliseconds: number): void {
    this.#longestOfThese = Math.max(this.#longestOfThese, milliseconds);
    this.#longest = Math.max(this.#longest, milliseconds);
    this.#count += 1;
    if (this.#count < SAMPLE_SIZE) return;
    this.#longest = this.#longestOfThese;
    this.#longestOfThese = 0;
    this.#count = 0;
  }

  /** What is known counts no longer: jobs did not begin in time. */
  reset(): void {
    this.#longest = Infinity;
    this.#longestOfThese = 0;
    this.#count = 0;
  }

  limit(concurrency: number): number {
    return Math.floor(Math.min(MAX_TAKE_AHEAD, (concurrency * START_WITHIN_MS) / this.#longest));
  }
}
