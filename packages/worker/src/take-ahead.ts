/** Jobs that are taken ahead shall begin within this time. */
const AHEAD_MS = 20;
/** More gain nothing. */
const MOST_AHEAD = 400;
/** The longest of so many jobs says how long the next ones may take. */
const LOOKED_AT = 32;

/**
 * How many jobs a worker takes beyond those that it can run now. Where jobs are shorter than the way to
 * the server and back, a worker without any would mostly wait. Where they are not, none are taken
 * ahead: another worker may be free for them. One job that takes longer than those before ends it.
 */
export class TakeAhead {
  #longest = Infinity;
  #longestOfThese = 0;
  #count = 0;

  /** A job has ended, so long after it began. */
  ended(milliseconds: number): void {
    this.#longestOfThese = Math.max(this.#longestOfThese, milliseconds);
    this.#longest = Math.max(this.#longest, milliseconds);
    this.#count += 1;
    if (this.#count < LOOKED_AT) return;
    this.#longest = this.#longestOfThese;
    this.#longestOfThese = 0;
    this.#count = 0;
  }

  /** What is known counts no longer: jobs did not begin in time. */
  forget(): void {
    this.#longest = Infinity;
    this.#longestOfThese = 0;
    this.#count = 0;
  }

  jobs(concurrency: number): number {
    return Math.floor(Math.min(MOST_AHEAD, (concurrency * AHEAD_MS) / this.#longest));
  }
}
