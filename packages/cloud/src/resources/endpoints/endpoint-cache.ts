import type { Endpoint } from '../../domain/records.ts';
import type { EndpointStore } from '../../store/store.ts';
import type { Clock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';

/** How old an answer may be: another server may have changed the endpoint, and this one is not told. */
const MAX_AGE_MS = 2000;
/** Beyond this many, those looked up longest ago are forgotten. */
const MAX_ENTRIES = 10_000;

/** While the store is away, what was known before goes on counting, for this long: a worker's result must not fail for want of a look at its endpoint. */
const MAX_STALE_MS = 60_000;

interface CacheEntry {
  /** When it was asked for. */
  at: number;
  found: Promise<Endpoint | undefined>;
  /** The answer, once it is there. */
  endpoint?: Endpoint;
}

/** Endpoints by id, whoever owns them, kept in memory for those who ask at every request. */
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

  /** The endpoint, where it was looked up a moment ago. */
  findCached(id: string): Endpoint | undefined {
    const kept = this.#entries.get(id);
    return kept !== undefined && Math.abs(this.#clock.now() - kept.at) < this.#maxAge
      ? kept.endpoint
      : undefined;
  }

  /** Called when an endpoint has changed or gone; without an id, all are forgotten. */
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
      // An id that nobody has is not kept: there is no end of those.
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
