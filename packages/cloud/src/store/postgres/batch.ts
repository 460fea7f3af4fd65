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
    if (!this.#busy) {
      this.#busy = true;
      setImmediate(() => void this.#drain());
    }
    return new Promise((resolve, reject) => this.#waiting.push({ item, resolve, reject }));
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, this.#largest);
      try {
        const results = await this.#commit(group.map(({ item }) => item));
        group.forEach(({ resolve }, index) => resolve(results[index] as Out));
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    this.#busy = false;
  }
}
