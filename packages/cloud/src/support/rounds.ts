export interface RoundsParts {
  look(id: string): Promise<void>;
  /** Whether things are looked at now, or this one is. */
  may(id: string): boolean;
  onError(error: unknown, id: string): void;
}

/** Looks at things by their id: one look at a time for each, and another one where something happened meanwhile. */
export class Rounds {
  readonly #parts: RoundsParts;
  readonly #underWay = new Map<string, { again: boolean; over: Promise<void> }>();

  constructor(parts: RoundsParts) {
    this.#parts = parts;
  }

  /** Something happened to this one: look at it now. */
  ask(id: string): void {
    if (!this.#parts.may(id)) return;
    const earlier = this.#underWay.get(id);
    if (earlier !== undefined) {
      earlier.again = true;
      return;
    }
    const round = { again: false, over: Promise.resolve() };
    this.#underWay.set(id, round);
    round.over = this.#parts
      .look(id)
      .catch((error: unknown) => this.#parts.onError(error, id))
      .then(() => {
        this.#underWay.delete(id);
        if (round.again) this.ask(id);
      });
  }

  isUnderWay(id: string): boolean {
    return this.#underWay.has(id);
  }

  /** Resolves when the look that is under way at this one has ended. */
  over(id: string): Promise<void> {
    return this.#underWay.get(id)?.over ?? Promise.resolve();
  }

  async allOver(): Promise<void> {
    await Promise.all([...this.#underWay.values()].map(({ over }) => over));
  }
}
