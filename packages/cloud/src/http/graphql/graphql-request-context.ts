import type { Caller } from '../../domain/caller.ts';
import { BerthError, ruleError } from '../../support/errors.ts';

/**
 * The most entries that all lists of one answer hold together. Types that refer to each other could otherwise
 * be unfolded without end.
 */
const MAX_LIST_ENTRIES = { known: 100_000, unknown: 10_000 };

/** One request, as the code behind its fields sees it. */
export class RequestContext {
  readonly #caller: Caller | undefined;
  readonly #shared = new Map<string, Promise<unknown>>();
  #entries = 0;

  constructor(caller: Caller | undefined) {
    this.#caller = caller;
  }

  /** Whether a key was shown. */
  get authenticated(): boolean {
    return this.#caller !== undefined;
  }

  get caller(): Caller {
    if (this.#caller === undefined) throw new BerthError('unauthenticated', 'this needs an API key');
    return this.#caller;
  }

  /** Work that several fields of one request share is done once. */
  memoize<T>(name: string, work: () => Promise<T>): Promise<T> {
    const begun = this.#shared.get(name) as Promise<T> | undefined;
    if (begun !== undefined) return begun;
    const begin = work();
    this.#shared.set(name, begin);
    return begin;
  }

  countListEntries(more: number): void {
    this.#entries += more;
    const limit = this.authenticated ? MAX_LIST_ENTRIES.known : MAX_LIST_ENTRIES.unknown;
    if (this.#entries > limit)
      throw ruleError(
        `the answer would hold more than ${limit} entries; select fewer lists, or ask in several requests`,
      );
  }
}
