import { BerthError } from '../../support/errors.ts';
import { NO_OBSERVER } from '../store-observer.ts';
import type { StoreObserver } from '../store-observer.ts';

/** Items that came together and are answered together. */
interface PendingItems<In, Out> {
  items: readonly In[];
  resolve: (values: Out[]) => void;
  reject: (error: unknown) => void;
}

/**
 * Items that arrive while a commit is on its way wait together and share the next one. Alone,
 * an item goes at once; under load the batches grow by themselves.
 */
export class CommitBatcher<In, Out> {
  readonly #commit: (items: readonly In[]) => Promise<readonly Out[]>;
  readonly #largest: number;
  readonly #observer: StoreObserver;
  #waiting: PendingItems<In, Out>[] = [];
  #busy = false;

  constructor(
    commit: (items: readonly In[]) => Promise<readonly Out[]>,
    largest: number,
    observer = NO_OBSERVER,
  ) {
    this.#observer = observer;
    this.#commit = commit;
    this.#largest = largest;
  }

  async add(item: In): Promise<Out> {
    const [value] = await this.addAll([item]);
    return value as Out;
  }

  /** The same for several, which are committed and answered together. */
  addAll(items: readonly In[]): Promise<Out[]> {
    if (items.length === 0) return Promise.resolve([]);
    this.#start();
    return new Promise((resolve, reject) => this.#waiting.push({ items, resolve, reject }));
  }

  #start(): void {
    if (this.#busy) return;
    this.#busy = true;
    setImmediate(() => void this.#drain());
  }

  /**
   * Callers are answered after the next commit has been sent: the database does not wait for what they do
   * with the answers.
   */
  async #drain(): Promise<void> {
    let answer = (): void => undefined;
    do {
      const committing = this.#commitGroup(this.#next());
      answer();
      answer = await committing;
    } while (this.#waiting.length > 0);
    this.#busy = false;
    answer();
  }

  /** As many as fit into a commit, and at least one. */
  #next(): PendingItems<In, Out>[] {
    let size = 0;
    let count = 0;
    for (const { items } of this.#waiting) {
      size += items.length;
      if (count > 0 && size > this.#largest) break;
      count += 1;
    }
    return this.#waiting.splice(0, count);
  }

  /** Commits a group. Resolves to a function that settles the promises of its callers. */
  async #commitGroup(group: readonly PendingItems<In, Out>[]): Promise<() => void> {
    const [first] = group;
    try {
      const all =
        group.length === 1 && first !== undefined ? first.items : group.flatMap(({ items }) => items);
      const start = performance.now();
      const results = await this.#commit(all);
      this.#observer.committed(all.length, performance.now() - start);
      return () => {
        let from = 0;
        for (const { items, resolve } of group) {
          resolve(results.slice(from, from + items.length));
          from += items.length;
        }
      };
    } catch (error) {
      const alone = group.length === 1 || (error instanceof BerthError && error.code === 'unavailable');
      if (alone) return () => group.forEach(({ reject }) => reject(error));
      // One of them cannot be committed: each is tried alone, so that the others succeed.
      for (const one of group) (await this.#commitGroup([one]))();
      return () => undefined;
    }
  }
}
