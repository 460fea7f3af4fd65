import { BerthError } from '../../support/errors.ts';

interface Waiting<In, Out> {
  item: In;
  resolve: (value: Out) => void;
  reject: (error: unknown) => void;
}

/**
 * Items that arrive while a commit is on its way wait together and share the next one. Alone,
 * an item goes at once; under load the batches grow by themselves.
 */
export class Batch<In, Out> {
  readonly #commit: (items: In[]) => Promise<Out[]>;
  readonly #largest: number;
  #waiting: Waiting<In, Out>[] = [];
  #busy = false;

  constructor(commit: (items: In[]) => Promise<Out[]>, largest: number) {
    this.#commit = commit;
    this.#largest = largest;
  }

  add(item: In): Promise<Out> {
    this.#start();
    return new Promise((resolve, reject) => this.#waiting.push({ item, resolve, reject }));
  }

  /** The same for several, which are answered together. */
  addAll(items: readonly In[]): Promise<Out[]> {
    if (items.length === 0) return Promise.resolve([]);
    this.#start();
    return new Promise((resolve, reject) => {
      const results = new Array<Out>(items.length);
      let left = items.length;
      for (const [index, item] of items.entries()) {
        const settle = (value: Out): void => {
          results[index] = value;
          left -= 1;
          if (left === 0) resolve(results);
        };
        this.#waiting.push({ item, resolve: settle, reject });
      }
    });
  }

  #start(): void {
    if (this.#busy) return;
    this.#busy = true;
    setImmediate(() => void this.#drain());
  }

  /** Whoever is done is answered when the next ones are on their way: the database does not wait for what is made of the answers. */
  async #drain(): Promise<void> {
    let answer = (): void => undefined;
    do {
      const settling = this.#settle(this.#waiting.splice(0, this.#largest));
      answer();
      answer = await settling;
    } while (this.#waiting.length > 0);
    this.#busy = false;
    answer();
  }

  /** Answers how to tell them. */
  async #settle(group: Waiting<In, Out>[]): Promise<() => void> {
    try {
      const results = await this.#commit(group.map(({ item }) => item));
      return () => group.forEach(({ resolve }, index) => resolve(results[index] as Out));
    } catch (error) {
      const alone = group.length === 1 || (error instanceof BerthError && error.code === 'unavailable');
      if (alone) return () => group.forEach(({ reject }) => reject(error));
      // One item cannot be done. Each by itself: the others shall not suffer for it.
      for (const one of group) (await this.#settle([one]))();
      return () => undefined;
    }
  }
}
