/** Every pause and limit of time, in milliseconds, in one place, so that a test can make them short. */
export interface Pace {
  /** Between an answer without a job that came at once and the next question. */
  emptyAnswer: number;
  /** After 429. */
  tooMany: number;
  /** Pauses after failures grow from the first to the longest. */
  firstRetry: number;
  longestRetry: number;
  /** A held request that has not been answered is given up. The server holds one for less. */
  poll: number;
  /** For an answer to a question that is no longer wanted to come whole, where it has begun. It may hold jobs, which the server counts as delivered; but one that hangs is not waited for. */
  begunAnswer: number;
  /** A post whose connection has been silent for this long is sent again. */
  post: number;
  /** A result that is refused, not merely not accepted yet, is tried for this long. */
  refusedResult: number;
  /** Once the worker stops, a result is tried for this long. */
  lastResult: number;
  /** The answer to the upgrade of the fast channel. */
  upgrade: number;
  /** Until the fast channel is tried again where it worked before or may yet. */
  upgradeAgain: number;
  /** A connection that lasted this long was a good one: the next pause is a short one. */
  goodConnection: number;
  /** Results without any word from the server for this long: the connection is dead. */
  deadConnection: number;
  /** For the other side to read the last lines and close. */
  farewell: number;
  /** For a handler to end after its signal was aborted. Then its place is given to the next job. */
  windUp: number;
  /** Between two calls of a concurrency function. */
  concurrency: number;
  unhealthyReport: number;
}

export const NORMAL_PACE: Pace = {
  emptyAnswer: 1_000,
  tooMany: 5_000,
  firstRetry: 250,
  longestRetry: 5_000,
  poll: 90_000,
  begunAnswer: 3_000,
  post: 120_000,
  refusedResult: 60_000,
  lastResult: 600_000,
  upgrade: 3_000,
  upgradeAgain: 60_000,
  goodConnection: 5_000,
  deadConnection: 60_000,
  farewell: 2_000,
  windUp: 5_000,
  concurrency: 1_000,
  unhealthyReport: 2_000,
};

/** Pauses that double, each somewhere between half and whole, so that many workers do not come back in step. */
export class Backoff {
  readonly #first: number;
  readonly #longest: number;
  #failures = 0;

  constructor({ firstRetry, longestRetry }: Pace) {
    this.#first = firstRetry;
    this.#longest = longestRetry;
  }

  next(): number {
    const whole = Math.min(this.#longest, this.#first * 2 ** this.#failures);
    this.#failures = Math.min(this.#failures + 1, 30);
    return whole * (0.5 + Math.random() / 2);
  }

  reset(): void {
    this.#failures = 0;
  }
}
