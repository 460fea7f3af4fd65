import { isRecent, monotonicNow } from './clock.ts';
import type { Clock } from './clock.ts';

export interface RateLimitRequest {
  /** How many requests one key may send in each window; called with the number used so far. */
  quotas: readonly ((used: number) => number)[];
  /** How many requests of one key may be open at the same time. If set, the caller must call `release`. */
  maxOpen?: number;
}

export interface WindowState {
  quota: number;
  used: number;
  /** Until the window starts again; at least 1. */
  secondsLeft: number;
}

export interface RateLimitResult {
  windows: WindowState[];
  /**
   * The window that is used up, or `open` if too many requests are open; undefined if the request may
   * proceed.
   */
  exceeded: WindowState | 'open' | undefined;
  release(): void;
}

/** Tells other servers of what was counted here, and of what they counted. */
export interface RateShare {
  /** One, if no amount is given. */
  publish(key: string, amount?: number): void;
  subscribe(add: (key: string, used: number) => void): void;
}

interface WindowCount {
  startedAt: number;
  used: number;
}

interface Usage {
  counts: WindowCount[];
  open: number;
}

/**
 * Counts requests by key in fixed windows, in the memory of this server and on monotonic time, with those
 * that other servers report. Refused requests are not counted.
 */
export class RateLimiter {
  readonly #clock: Clock;
  readonly #windowsMs: readonly number[];
  readonly #usage = new Map<string, Usage>();
  readonly #share: RateShare | undefined;
  #sweptAt = 0;

  /** Each key has a window of each of these lengths. */
  constructor(clock: Clock, windowSeconds: readonly number[], share?: RateShare) {
    this.#clock = clock;
    this.#windowsMs = windowSeconds.map((seconds) => seconds * 1000);
    this.#share = share;
    share?.subscribe((key, used) => this.#addFromElsewhere(key, used));
  }

  /** The number of keys in memory. */
  get size(): number {
    return this.#usage.size;
  }

  acquire(key: string, { quotas, maxOpen = Number.POSITIVE_INFINITY }: RateLimitRequest): RateLimitResult {
    const now = monotonicNow(this.#clock);
    const usage = this.#currentUsage(key, now);
    const states = usage.counts.map(({ startedAt, used }, index): WindowState => {
      const windowMs = this.#windowsMs[index] ?? 0;
      return {
        quota: quotas[index]?.(used) ?? 0,
        used,
        secondsLeft: Math.max(1, Math.ceil((windowMs - (now - startedAt)) / 1000)),
      };
    });
    const full = states.find(({ used, quota }) => used >= quota);
    const exceeded = full ?? (usage.open >= maxOpen ? 'open' : undefined);
    if (exceeded !== undefined) return { windows: states, exceeded, release: () => undefined };
    for (const count of usage.counts) count.used += 1;
    for (const state of states) state.used += 1;
    this.#share?.publish(key);
    if (maxOpen === Number.POSITIVE_INFINITY)
      return { windows: states, exceeded: undefined, release: () => undefined };
    usage.open += 1;
    return {
      windows: states,
      exceeded: undefined,
      release: () => {
        usage.open -= 1;
      },
    };
  }

  /** What a key has used of each of its windows. */
  used(key: string): number[] {
    const now = monotonicNow(this.#clock);
    return this.#windowsMs.map((windowMs, index) => {
      const count = this.#usage.get(key)?.counts[index];
      return count !== undefined && isRecent(count.startedAt, windowMs, now) ? count.used : 0;
    });
  }

  #addFromElsewhere(key: string, used: number): void {
    for (const count of this.#currentUsage(key, monotonicNow(this.#clock)).counts) count.used += used;
  }

  /** Its windows that are over start again. */
  #currentUsage(key: string, now: number): Usage {
    this.#sweep(now);
    const usage = this.#usage.get(key) ?? { counts: [], open: 0 };
    this.#usage.set(key, usage);
    this.#windowsMs.forEach((windowMs, index) => {
      const count = usage.counts[index];
      if (count === undefined || !isRecent(count.startedAt, windowMs, now))
        usage.counts[index] = { startedAt: now, used: 0 };
    });
    return usage;
  }

  /** Forgets keys whose windows are over, so that memory does not grow with every key ever used. */
  #sweep(now: number): void {
    const longestMs = Math.max(...this.#windowsMs);
    if (isRecent(this.#sweptAt, longestMs, now)) return;
    this.#sweptAt = now;
    for (const [key, { counts, open }] of this.#usage)
      if (open === 0 && !counts.some(({ startedAt }) => isRecent(startedAt, longestMs, now)))
        this.#usage.delete(key);
  }
}
