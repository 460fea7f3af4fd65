import { isRecent, monotonicNow } from './clock.ts';
import type { Clock } from './clock.ts';

export interface RateLimitWindow {
  seconds: number;
  /** How many requests one key may send in a window; called with the number used so far. */
  quota(used: number): number;
}

export interface RateLimitRequest {
  windows: readonly RateLimitWindow[];
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
  /** Requests of other servers, before the first one here. */
  elsewhere?: WindowCount;
}

/**
 * Counts requests by key in fixed windows, in the memory of this server and on monotonic time, with those
 * that other servers report. Refused requests are not counted.
 */
export class RateLimiter {
  readonly #clock: Clock;
  readonly #usage = new Map<string, Usage>();
  readonly #share: RateShare | undefined;
  #sweptAt = 0;

  constructor(clock: Clock, share?: RateShare) {
    this.#clock = clock;
    this.#share = share;
    share?.subscribe((key, used) => this.#addFromElsewhere(key, used));
  }

  /** The number of keys in memory. */
  get size(): number {
    return this.#usage.size;
  }

  /** Each use of a key must name the same windows in the same order. */
  acquire(key: string, { windows, maxOpen = Number.POSITIVE_INFINITY }: RateLimitRequest): RateLimitResult {
    const now = monotonicNow(this.#clock);
    this.#sweep(now, Math.max(...windows.map(({ seconds }) => seconds)) * 1000);
    const usage = this.#usage.get(key) ?? { counts: [], open: 0 };
    this.#usage.set(key, usage);
    windows.forEach(({ seconds }, index) => {
      const count = usage.counts[index];
      if (count !== undefined && isRecent(count.startedAt, seconds * 1000, now)) return;
      const { elsewhere } = usage;
      usage.counts[index] =
        count === undefined && elsewhere !== undefined && isRecent(elsewhere.startedAt, seconds * 1000, now)
          ? { ...elsewhere }
          : { startedAt: now, used: 0 };
    });
    delete usage.elsewhere;
    const states = windows.map(({ seconds, quota }, index): WindowState => {
      const { startedAt, used } = usage.counts[index] ?? { startedAt: now, used: 0 };
      return {
        quota: quota(used),
        used,
        secondsLeft: Math.max(1, Math.ceil(seconds - (now - startedAt) / 1000)),
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

  #addFromElsewhere(key: string, used: number): void {
    const now = monotonicNow(this.#clock);
    const usage = this.#usage.get(key) ?? { counts: [], open: 0 };
    this.#usage.set(key, usage);
    for (const count of usage.counts) count.used += used;
    if (usage.counts.length === 0)
      usage.elsewhere = {
        startedAt: usage.elsewhere?.startedAt ?? now,
        used: (usage.elsewhere?.used ?? 0) + used,
      };
  }

  /** Forgets keys whose windows are over, so that memory does not grow with every key ever used. */
  #sweep(now: number, longestMs: number): void {
    if (isRecent(this.#sweptAt, longestMs, now)) return;
    this.#sweptAt = now;
    for (const [key, { counts, open, elsewhere }] of this.#usage)
      if (
        open === 0 &&
        ![...counts, elsewhere].some((count) => isRecent(count?.startedAt ?? 0, longestMs, now))
      )
        this.#usage.delete(key);
  }
}
