import type { Endpoint } from '../../domain/records.ts';
import type { EndpointStore } from '../../store/store.ts';
import type { Clock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';

/** How old an answer may be: another server may have changed the endpoint, and this one is not told. */
const MAX_AGE_MS = 2000;
/** Beyond this many, the oldest are evicted. */
const MAX_ENTRIES = 10_000;

/** How long a stale entry is used while the store is unavailable: a worker's result must not fail because its endpoint cannot be read. */
const MAX_STALE_MS = 60_000;

interface CacheEntry {
  /** When it was requested. */
  at: number;
  found: Promise<Endpoint | undefined>;
  /** The result, once it is there. */
  endpoint?: Endpoint;
}

/** Endpoints of all accounts by id, cached for code that needs one at every request. */
export class EndpointCache {
  readonly #store: Pick<EndpointStore, 'findInAnyAccount'>;
  readonly #clock: Clock;
  readonly #maxAge: number;
  readonly #entries = new Map<string, CacheEntry>();

  constructor(store: Pick<EndpointStore, 'findInAnyAccount'>, clock: Clock, maxAge = MAX_AGE_MS) {
    this.#store = store;
    this.#clock = clock;
    this.#maxAge = maxAge;
  }

  find(id: string): Promise<Endpoint | undefined> {
    const now = this.#clock.now();
    const kept = this.#entries.get(id);
    return kept !== undefined && Math.abs(now - kept.at) < this.#maxAge ? kept.found : this.#look(id, now);
  }

  /** The endpoint, if it is cached. */
  findCached(id: string): Endpoint | undefined {
    const kept = this.#entries.get(id);
    return kept !== undefined && Math.abs(this.#clock.now() - kept.at) < this.#maxAge
      ? kept.endpoint
      : undefined;
  }

  /** Called when an endpoint was changed or deleted; without an id, clears the cache. */
  invalidate(id?: string): void {
    if (id === undefined) this.#entries.clear();
    else this.#entries.delete(id);
  }

  async #look(id: string, at: number): Promise<Endpoint | undefined> {
    const before = this.#entries.get(id);
    const entry: CacheEntry = { at, found: this.#store.findInAnyAccount(id) };
    this.#entries.delete(id);
    this.#entries.set(id, entry);
    const drop = (): void => {
      if (this.#entries.get(id) === entry) this.#entries.delete(id);
    };
    try {
      const found = await entry.found;
      // Unknown ids are not cached: there is no limit to their number.
      if (found === undefined) drop();
      else entry.endpoint = found;
      this.#cut();
      return found;
    } catch (error) {
      drop();
      const stale =
        error instanceof BerthError &&
        error.code === 'unavailable' &&
        before?.endpoint !== undefined &&
        Math.abs(at - before.at) < MAX_STALE_MS;
      if (!stale) throw error;
      if (!this.#entries.has(id)) this.#entries.set(id, before);
      return before.endpoint;
    }
  }

  #cut(): void {
    for (const id of this.#entries.keys()) {
      if (this.#entries.size <= MAX_ENTRIES) return;
      this.#entries.delete(id);
    }
  }
}
