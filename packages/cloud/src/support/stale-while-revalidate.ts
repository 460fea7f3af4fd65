import type { Clock } from './clock.ts';
import { cacheWithTtl } from './cache-with-ttl.ts';

/**
 * Reads on first use. Later calls return the last value and, if it is too old, read again in the background,
 * so only the first caller waits. A failed reading clears the value.
 */
export function staleWhileRevalidate<T>(
  read: () => Promise<T>,
  lifetimeMs: number,
  clock: Clock,
  onFailure: (error: unknown) => void,
): () => Promise<T> {
  const fresh = cacheWithTtl(read, lifetimeMs, clock);
  let known: { value: T } | undefined;
  return async () => {
    const reading = fresh();
    reading.then(
      (value) => (known = { value }),
      () => (known = undefined),
    );
    if (known === undefined) return reading;
    reading.catch(onFailure);
    return known.value;
  };
}
