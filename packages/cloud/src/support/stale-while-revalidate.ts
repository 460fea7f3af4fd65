import type { Clock } from './clock.ts';
import { cacheWithTtl } from './cache-with-ttl.ts';

/**
 * Reads on first use. After that it answers with what was known last, and reads anew behind that
 * when it is too old: nobody waits for the same thing twice. After a failed reading nothing is
 * known any more.
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
