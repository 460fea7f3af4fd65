import type { InstanceUsage } from '../engines/instance.ts';
import { BerthError } from '../support/errors.ts';

/** How long a measurement is reused. */
const USAGE_CACHE_MS = 2_000;
const MAX_CACHED_USAGES = 20_000;

/**
 * The usage of instances, cached briefly: CPU usage is measured since the previous request, so requests that
 * follow each other closely would give meaningless numbers.
 */
export class InstanceUsageCache {
  readonly #usages = new Map<string, { at: number; usage: Promise<InstanceUsage | undefined> }>();

  /** `key` names one run of an instance. */
  read(key: string, measure: () => Promise<InstanceUsage | undefined>): Promise<InstanceUsage | undefined> {
    const now = performance.now();
    const cached = this.#usages.get(key);
    if (cached !== undefined && now - cached.at < USAGE_CACHE_MS) return cached.usage;
    if (this.#usages.size >= MAX_CACHED_USAGES) this.#usages.clear();
    const usage = measure().catch((error: unknown) => {
      // While the engine does not answer, the usage is unknown, but the instance still counts as running.
      if (error instanceof BerthError && error.code === 'unavailable') return undefined;
      throw error;
    });
    this.#usages.set(key, { at: now, usage });
    return usage;
  }
}
