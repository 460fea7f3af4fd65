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
  let [followed, watched]: (Promise<T> | undefined)[] = [];
  return async () => {
    const reading = fresh();
    if (reading !== followed) {
      followed = reading;
      reading.then(
        (value) => (known = { value }),
        () => (known = undefined),
      );
    }
    if (known === undefined) return reading;
    if (reading !== watched) {
      watched = reading;
      reading.catch(onFailure);
    }
    return known.value;
  };
}
