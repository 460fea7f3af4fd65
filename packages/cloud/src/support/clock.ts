/** The source of time. Tests use one that they advance themselves. */
export interface Clock {
  /** Milliseconds since 1970. In the server it does not jump when the system time is set (`SteadyClock`). */
  now(): number;
  /** Milliseconds since some start. Does not jump when the system time is set. Default: `now`. */
  monotonic?(): number;
  /**
   * What the clock of this machine says, for times that others set: expiry of keys, signatures. Default:
   * `now`.
   */
  wall?(): number;
}

export const systemClock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
} satisfies Clock;

export function wallNow(clock: Clock): number {
  return clock.wall?.() ?? clock.now();
}

/** A time that another program read from the clock of this machine a short while ago; never in the future. */
export function fromWall(clock: Clock, at: number): number {
  if (clock.wall === undefined) return at;
  const now = clock.now();
  return Math.min(now, Math.round(at - clock.wall() + now));
}

export function monotonicNow(clock: Clock): number {
  return clock.monotonic?.() ?? clock.now();
}

/** A clock that advances only when told to by a test. */
export class ManualClock implements Clock {
  #now: number;

  constructor(start = Date.UTC(2026, 0, 1)) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  advance(milliseconds: number): void {
    this.#now += milliseconds;
  }
}

/**
 * Whether something happened less than this long ago. After the clock was set back, times in the future count
 * as long ago.
 */
export function isRecent(at: number, milliseconds: number, now: number): boolean {
  return at <= now && now - at < milliseconds;
}

/** The largest difference between the clocks of servers that share a database. */
export const MAX_CLOCK_SKEW_MS = 10_000;

/** A time further ahead than that was written before the clock was set back. */
export function isBeyondClockSkew(at: number, now: number): boolean {
  return at > now + MAX_CLOCK_SKEW_MS;
}

/** The latest time whose year has four digits, the most that any interface reads. */
export const MAX_TIMESTAMP = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

export function isoTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

export function isoTimeOrNull(milliseconds: number | null): string | null {
  return milliseconds === null ? null : isoTime(milliseconds);
}
