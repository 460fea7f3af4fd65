import type { Clock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import { RateLimiter } from '../../support/rate-limiter.ts';
import type { RateShare, WindowState } from '../../support/rate-limiter.ts';

export interface RestRateLimit {
  name: 'minute' | 'hour' | 'day';
  seconds: number;
  quota: number;
}

/** The rate limit of the REST API by key, with the state of each window in the RateLimit headers. */
export class RestRateLimits {
  readonly #limits: readonly RestRateLimit[];
  readonly #quotas: (() => number)[];
  readonly #policy: string;
  readonly #limiter: RateLimiter;

  constructor(limits: readonly RestRateLimit[], clock: Clock, share?: RateShare) {
    this.#limits = limits;
    this.#quotas = limits.map(
      ({ quota }) =>
        () =>
          quota,
    );
    this.#policy = limits.map(({ name, quota, seconds }) => `"${name}";q=${quota};w=${seconds}`).join(', ');
    this.#limiter = new RateLimiter(
      clock,
      limits.map(({ seconds }) => seconds),
      share,
    );
  }

  /**
   * Counts one request and returns its headers. Throws if a window is used up, with the seconds until it
   * starts again.
   */
  consume(key: string): Record<string, string> {
    const { windows, exceeded } = this.#limiter.acquire(key, { quotas: this.#quotas });
    const headers = { ratelimit: this.#stateHeader(windows), 'ratelimit-policy': this.#policy };
    if (exceeded === undefined || exceeded === 'open') return headers;
    const { name } = this.#limits[windows.indexOf(exceeded)] as RestRateLimit;
    throw new BerthError(
      'rate',
      `rate limit exceeded for the ${name} window; try again in ${exceeded.secondsLeft} s`,
      { headers: { ...headers, 'retry-after': String(exceeded.secondsLeft) } },
    );
  }

  #stateHeader(windows: readonly WindowState[]): string {
    return windows
      .map(
        ({ quota, used, secondsLeft }, index) =>
          `"${this.#limits[index]?.name}";r=${quota - used};t=${secondsLeft}`,
      )
      .join(', ');
  }
}
