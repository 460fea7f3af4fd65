import { BerthError } from '../../support/errors.ts';
import type { Clock } from '../../support/clock.ts';

export interface RateLimitWindow {
  name: 'minute' | 'hour' | 'day';
  seconds: number;
  quota: number;
}

interface WindowCount {
  startedAt: number;
  used: number;
}

/** Counts requests per key in fixed windows, in the memory of this server, and says so in the RateLimit headers. */
export class RateLimiter {
  readonly #windows: RateLimitWindow[];
  readonly #clock: Clock;
  readonly #counts = new Map<string, WindowCount[]>();
  readonly #policy: string;
  #sweptAt = 0;

  constructor(windows: RateLimitWindow[], clock: Clock) {
    this.#windows = windows;
    this.#clock = clock;
    this.#policy = windows.map(({ name, quota, seconds }) => `"${name}";q=${quota};w=${seconds}`).join(', ');
  }

  /** Counts one request. Throws once a window is used up, with the seconds until it opens again. */
  consume(key: string): Record<string, string> {
    const now = this.#clock.now();
    this.#sweep(now);
    const counts = this.#countsOf(key, now);
    const full = this.#windows.findIndex((window, index) => (counts[index]?.used ?? 0) >= window.quota);
    if (full === -1) for (const count of counts) count.used += 1;
    const headers = { ratelimit: this.#state(counts, now), 'ratelimit-policy': this.#policy };
    const window = this.#windows[full];
    if (window === undefined) return headers;
    const wait = this.#secondsLeft(window, counts[full], now);
    throw new BerthError(
      'rate',
      `rate limit exceeded for the ${window.name} window; try again in ${wait} s`,
      { headers: { ...headers, 'retry-after': String(wait) } },
    );
  }

  #countsOf(key: string, now: number): WindowCount[] {
    const known = this.#counts.get(key) ?? this.#windows.map(() => ({ startedAt: now, used: 0 }));
    this.#windows.forEach((window, index) => {
      const count = known[index];
      // A clock that was set back starts the window anew rather than stretching it.
      if (count !== undefined && (now - count.startedAt >= window.seconds * 1000 || now < count.startedAt))
        known[index] = { startedAt: now, used: 0 };
    });
    this.#counts.set(key, known);
    return known;
  }

  #state(counts: WindowCount[], now: number): string {
    return this.#windows
      .map(
        (window, index) =>
          `"${window.name}";r=${window.quota - (counts[index]?.used ?? 0)};t=${this.#secondsLeft(window, counts[index], now)}`,
      )
      .join(', ');
  }

  #secondsLeft(window: RateLimitWindow, count: WindowCount | undefined, now: number): number {
    return Math.max(1, Math.ceil(window.seconds - (now - (count?.startedAt ?? now)) / 1000));
  }

  /** Forgets keys whose longest window has passed, so that memory does not grow with every key ever seen. */
  #sweep(now: number): void {
    const longest = Math.max(...this.#windows.map(({ seconds }) => seconds)) * 1000;
    if (now - this.#sweptAt < longest) return;
    this.#sweptAt = now;
    for (const [key, counts] of this.#counts) {
      if (counts.every((count) => now - count.startedAt >= longest)) this.#counts.delete(key);
    }
  }
}
