export interface ReconcileQueueOptions {
  reconcile(id: string): Promise<void>;
  /** Whether things are looked at now, or this one is. */
  isEnabled(id: string): boolean;
  onError(error: unknown, id: string): void;
}

/** Looks at things by their id: one look at a time for each, and another one where something happened meanwhile. */
export class ReconcileQueue {
  readonly #parts: ReconcileQueueOptions;
  readonly #underWay = new Map<string, { again: boolean; whenDone: Promise<void> }>();

  constructor(parts: ReconcileQueueOptions) {
    this.#parts = parts;
  }

  /** Something happened to this one: look at it now. */
  enqueue(id: string): void {
    if (!this.#parts.isEnabled(id)) return;
    const earlier = this.#underWay.get(id);
    if (earlier !== undefined) {
      earlier.again = true;
      return;
    }
    const round = { again: false, whenDone: Promise.resolve() };
    this.#underWay.set(id, round);
    round.whenDone = this.#parts
      .reconcile(id)
      .catch((error: unknown) => this.#parts.onError(error, id))
      .then(() => {
        this.#underWay.delete(id);
        if (round.again) this.enqueue(id);
      });
  }

  isRunning(id: string): boolean {
    return this.#underWay.has(id);
  }

  /** Resolves when the look that is under way at this one has ended. */
  over(id: string): Promise<void> {
    return this.#underWay.get(id)?.whenDone ?? Promise.resolve();
  }

  async whenAllDone(): Promise<void> {
    await Promise.all([...this.#underWay.values()].map(({ whenDone }) => whenDone));
  }
}
