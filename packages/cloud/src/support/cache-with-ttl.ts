import type { Clock } from './clock.ts';

/**
 * Reads on first use and again when the last reading is too old. Concurrent callers share one reading. A
 * failed reading is not cached.
 */
export function cacheWithTtl<T>(read: () => Promise<T>, lifetimeMs: number, clock: Clock): () => Promise<T> {
  let reading: Promise<T> | undefined;
  let startedAt = 0;
  return () => {
    if (reading !== undefined && clock.now() - startedAt < lifetimeMs) return reading;
    const fresh = read();
    reading = fresh;
    startedAt = clock.now();
    fresh.catch(() => {
      if (reading === fresh) reading = undefined;
    });
    return fresh;
  };
}
