/** Runs work with the same key one after the other, and work with different keys concurrently. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<void>>();

  runExclusive<T>(id: string, work: () => Promise<T>): Promise<T> {
    const done = this.waitUntilFree(id).then(work);
    const settled = done.then(
      () => undefined,
      () => undefined,
    );
    this.#last.set(id, settled);
    void settled.then(() => {
      if (this.#last.get(id) === settled) this.#last.delete(id);
    });
    return done;
  }

  /** Resolves when the work queued before has finished, successfully or not. */
  waitUntilFree(id: string): Promise<void> {
    return this.#last.get(id) ?? Promise.resolve();
  }

  isLocked(id: string): boolean {
    return this.#last.has(id);
  }

  async waitUntilAllFree(): Promise<void> {
    await Promise.all(this.#last.values());
  }
}
