import type { Endpoint } from '../../domain/records.ts';
import type { EndpointStore } from '../../store/store.ts';
import type { Clock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';

/** How long an endpoint is cached: another server may have changed it without notifying this one. */
const MAX_AGE_MS = 2000;
/** Beyond this many, the oldest are evicted. */
const MAX_ENTRIES = 10_000;

/**
 * How long a stale entry is used while the store is unavailable: a worker's result must not fail because its
 * endpoint cannot be read.
 */
const MAX_STALE_MS = 60_000;

interface CacheEntry {
  /** When it was requested. */
  at: number;
  found: Promise<Endpoint | undefined>;
  /** Set when `found` has resolved. */
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
    const cached = this.#entries.get(id);
    return cached !== undefined && Math.abs(now - cached.at) < this.#maxAge
      ? cached.found
      : this.#load(id, now);
  }

  /** The endpoint, if it is cached. */
  findCached(id: string): Endpoint | undefined {
    const cached = this.#entries.get(id);
    return cached !== undefined && Math.abs(this.#clock.now() - cached.at) < this.#maxAge
      ? cached.endpoint
      : undefined;
  }

  /** Called when an endpoint was changed or deleted; without an id, clears the cache. */
  invalidate(id?: string): void {
    if (id === undefined) this.#entries.clear();
    else this.#entries.delete(id);
  }

  async #load(id: string, at: number): Promise<Endpoint | undefined> {
    const previous = this.#entries.get(id);
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
      this.#evict();
      return found;
    } catch (error) {
      drop();
      const stale =
        error instanceof BerthError &&
        error.code === 'unavailable' &&
        previous?.endpoint !== undefined &&
        Math.abs(at - previous.at) < MAX_STALE_MS;
      if (!stale) throw error;
      if (!this.#entries.has(id)) this.#entries.set(id, previous);
      return previous.endpoint;
    }
  }

  #evict(): void {
    for (const id of this.#entries.keys()) {
      if (this.#entries.size <= MAX_ENTRIES) return;
      this.#entries.delete(id);
    }
  }
}
