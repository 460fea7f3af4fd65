/** All pauses and timeouts, in milliseconds, in one place, so that a test can shorten them. */
export interface Timings {
  /** Between an immediate answer without a job and the next request. */
  emptyPollDelay: number;
  /** After 429. */
  rateLimitDelay: number;
  /** Backoff after failures grows from the first to the longest pause. */
  minBackoff: number;
  maxBackoff: number;
  /** Timeout of a long poll. The server holds one for less. */
  pollTimeout: number;
  /**
   * For the response to an unwanted request to complete, where it has started. It may hold jobs that the
   * server counts as delivered, but a response that hangs is not awaited.
   */
  partialResponseTimeout: number;
  /** A post whose connection has been silent for this long is sent again. */
  postTimeout: number;
  /** A result that is refused permanently is retried for this long. */
  refusedResultRetry: number;
  /** Once the worker stops, a result is retried for this long. */
  finalResultDeadline: number;
  /** Timeout of the channel upgrade. */
  upgradeTimeout: number;
  /** Until the channel is tried again, where it worked before or may work later. */
  upgradeRetryDelay: number;
  /** After a connection that lasted this long, the next pause is short again. */
  stableConnectionAge: number;
  /** With unacknowledged results and no data from the server for this long, the connection is dead. */
  deadConnectionTimeout: number;
  /** For the peer to read the last lines and close. */
  closeTimeout: number;
  /** For a handler to end after its signal was aborted. Then its slot is reused. */
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

/**
 * Exponential backoff, each pause randomized between half and whole, so that many workers do not return in
 * step.
 */
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
