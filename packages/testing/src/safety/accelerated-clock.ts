import type { Clock } from '../../../cloud/src/support/clock.ts';

/**
 * A clock that runs `rate` times as fast as the real one: half a minute of silence is over in a second or
 * two.
 */
export function acceleratedClock(rate: number, start: number = Date.now()): Clock {
  const real = performance.now();
  return { now: () => Math.floor(start + (performance.now() - real) * rate) };
}
