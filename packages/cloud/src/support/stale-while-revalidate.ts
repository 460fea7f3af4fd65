import type { Clock } from './clock.ts';
import { cacheWithTtl } from './cache-with-ttl.ts';

/**
 * Reads on first use. Later calls return the last value and, if it is too old, read again in the background,
 * so only the first caller waits. A failed reading clears the value, and is reported once.
 */
export function staleWhileRevalidate<T>(
  read: () => Promise<T>,
  lifetimeMs: number,
  clock: Clock,
  onFailure: (error: unknown) => void,
): () => Promise<T> {
  const fresh = cacheWithTtl(read, lifetimeMs, clock);
  let known: { value: T } | undefined;
  let last: Promise<T> | undefined;
  return async () => {
    const reading = fresh();
    if (reading !== last) {
      last = reading;
      reading.then(
        (value) => (known = { value }),
        (error: unknown) => {
          // Where nothing was known, the callers get the error themselves.
          if (known !== undefined) onFailure(error);
          known = undefined;
        },
      );
    }
    return known === undefined ? reading : known.value;
  };
}
