/** Every pause and limit of time, in milliseconds, in one place, so that a test can make them short. */
export interface Timings {
  /** Between an answer without a job that came at once and the next question. */
  emptyPollDelay: number;
  /** After 429. */
  rateLimitDelay: number;
  /** Pauses after failures grow from the first to the longest. */
  minBackoff: number;
  maxBackoff: number;
  /** A held request that has not been answered is given up. The server holds one for less. */
  pollTimeout: number;
  /** For an answer to a question that is no longer wanted to come whole, where it has begun. It may hold jobs, which the server counts as delivered; but one that hangs is not waited for. */
  partialResponseTimeout: number;
  /** A post whose connection has been silent for this long is sent again. */
  postTimeout: number;
  /** A result that is refused, not merely not accepted yet, is tried for this long. */
  refusedResultRetry: number;
  /** Once the worker stops, a result is tried for this long. */
  finalResultDeadline: number;
  /** The answer to the upgrade of the fast channel. */
  upgradeTimeout: number;
  /** Until the fast channel is tried again where it worked before or may yet. */
  upgradeRetryDelay: number;
  /** A connection that lasted this long was a good one: the next pause is a short one. */
  stableConnectionAge: number;
  /** Results without any word from the server for this long: the connection is dead. */
  deadConnectionTimeout: number;
  /** For the other side to read the last lines and close. */
  closeTimeout: number;
  /** For a handler to end after its signal was aborted. Then its place is given to the next job. */
  abortGrace: number;
  /** Between two calls of a concurrency function. */
  concurrencyInterval: number;
  unhealthyReportTimeout: number;
}

export const DEFAULT_TIMINGS: Timings = {
  emptyPollDelay: 1_000,
  rateLimitDelay: 5_000,
  minBackoff: 250,
  maxBackoff: 5_000,
  pollTimeout: 90_000,
  partialResponseTimeout: 3_000,
  postTimeout: 120_000,
  refusedResultRetry: 60_000,
  finalResultDeadline: 600_000,
  upgradeTimeout: 3_000,
  upgradeRetryDelay: 60_000,
  stableConnectionAge: 5_000,
  deadConnectionTimeout: 60_000,
  closeTimeout: 2_000,
  abortGrace: 5_000,
  concurrencyInterval: 1_000,
  unhealthyReportTimeout: 2_000,
};

/** Pauses that double, each somewhere between half and whole, so that many workers do not come back in step. */
export class Backoff {
  readonly #first: number;
  readonly #longest: number;
  #failures = 0;

  constructor({ minBackoff, maxBackoff }: Timings) {
    this.#first = minBackoff;
    this.#longest = maxBackoff;
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
