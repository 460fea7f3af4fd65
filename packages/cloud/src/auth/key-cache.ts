import type { Clock } from '../support/clock.ts';

/**
 * How long a key is cached. A change on this server, or one that another server announces, clears the cache
 * at once.
 */
const CACHE_TTL_MS = 1_000;
/** The resolution of "last used": a write for every request would be too expensive. */
const LAST_USED_RESOLUTION_MS = 60_000;

export interface KeyCacheOptions<Found> {
  clock: Clock;
  maxEntries: number;
  /** Reads a key from the store. */
  load(key: string): Promise<Found | undefined>;
  /** Writes the times at which keys were last used, by id. */
  saveLastUsed(times: ReadonlyMap<string, number>): Promise<void>;
}

/** Keys from the store, cached for a moment, and when each was last used. API keys and S3 keys share it. */
export class KeyCache<Found> {
  readonly #options: KeyCacheOptions<Found>;
  readonly #entries = new Map<string, { found: Found; at: number }>();
  readonly #lastUsed = new Map<string, number>();
  /** Counts the invalidations: what was read before one and arrives after it is not cached. */
  #generation = 0;

  constructor(options: KeyCacheOptions<Found>) {
    this.#options = options;
  }

  async find(key: string): Promise<Found | undefined> {
    return this.findCached(key) ?? this.#load(key);
  }

  findCached(key: string): Found | undefined {
    const entry = this.#entries.get(key);
    return entry !== undefined && Math.abs(this.#options.clock.now() - entry.at) < CACHE_TTL_MS
      ? entry.found
      : undefined;
  }

  invalidate(): void {
    this.#entries.clear();
    this.#generation += 1;
  }

  recordUse({ id, lastUsedAt }: { id: string; lastUsedAt: number | null }): void {
    const now = this.#options.clock.now();
    if (now - (this.#lastUsed.get(id) ?? lastUsedAt ?? 0) >= LAST_USED_RESOLUTION_MS)
      this.#lastUsed.set(id, now);
  }

  async saveLastUsed(): Promise<void> {
    if (this.#lastUsed.size === 0) return;
    const times = new Map(this.#lastUsed);
    this.#lastUsed.clear();
    await this.#options.saveLastUsed(times);
  }

  async #load(key: string): Promise<Found | undefined> {
    const generation = this.#generation;
    const now = this.#options.clock.now();
    const found = await this.#options.load(key);
    if (found === undefined || generation !== this.#generation) return found;
    if (this.#entries.size >= this.#options.maxEntries) this.#entries.clear();
    this.#entries.set(key, { found, at: now });
    return found;
  }
}
