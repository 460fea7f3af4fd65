export interface ReconcileQueueOptions {
  reconcile(id: string): Promise<void>;
  /** False while nothing, or not this id, may be reconciled. */
  isEnabled(id: string): boolean;
  onError(error: unknown, id: string): void;
}

/**
 * Runs `reconcile` for each id that is enqueued: one run at a time per id, different ids side by
 * side. An id that is enqueued during its run is run once more afterwards.
 */
export class ReconcileQueue {
  readonly #options: ReconcileQueueOptions;
  readonly #runs = new Map<string, { again: boolean; done: Promise<void> }>();

  constructor(options: ReconcileQueueOptions) {
    this.#options = options;
  }

  enqueue(id: string): void {
    if (!this.#options.isEnabled(id)) return;
    const current = this.#runs.get(id);
    if (current !== undefined) {
      current.again = true;
      return;
    }
    const run = { again: false, done: Promise.resolve() };
    this.#runs.set(id, run);
    run.done = this.#options
      .reconcile(id)
      .catch((error: unknown) => this.#options.onError(error, id))
      .then(() => {
        this.#runs.delete(id);
        if (run.again) this.enqueue(id);
      });
  }

  isRunning(id: string): boolean {
    return this.#runs.has(id);
  }

  /** Resolves when the current run of this id has ended. */
  whenDone(id: string): Promise<void> {
    return this.#runs.get(id)?.done ?? Promise.resolve();
  }

  async whenAllDone(): Promise<void> {
    await Promise.all([...this.#runs.values()].map(({ done }) => done));
  }
}
