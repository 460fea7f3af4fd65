/** Of so many keys at a time: a statement has a limited number of values. */
const MAX_KEYS = 500;
/** One that hangs does not hold up the others. */
const MAX_IN_FLIGHT = 2;

/**
 * Looks up single records with few queries. While two are on their way, what is asked for meanwhile waits and goes
 * with the next one: alone a lookup is as quick as without, and thousands together take a few queries.
 */
export function batchLookups<Found>(
  load: (keys: readonly string[]) => Promise<ReadonlyMap<string, Found>>,
): (key: string) => Promise<Found | undefined> {
  const waiting = new Map<string, PromiseWithResolvers<Found | undefined>>();
  let inFlight = 0;

  const loadNext = async (): Promise<void> => {
    const batch = [...waiting].slice(0, MAX_KEYS);
    for (const [key] of batch) waiting.delete(key);
    inFlight += 1;
    try {
      const found = await load(batch.map(([key]) => key));
      for (const [key, { resolve }] of batch) resolve(found.get(key));
    } catch (error) {
      for (const [, { reject }] of batch) reject(error);
    } finally {
      inFlight -= 1;
      if (waiting.size > 0) void loadNext();
    }
  };

  return (key) => {
    let lookup = waiting.get(key);
    if (lookup === undefined) {
      lookup = Promise.withResolvers();
      waiting.set(key, lookup);
      if (inFlight < MAX_IN_FLIGHT) void loadNext();
    }
    return lookup.promise;
  };
}
