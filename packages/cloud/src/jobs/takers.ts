/** A worker that waits for jobs. */
export interface Taker<Given> {
  workerId: string;
  /** How many jobs it can take now. */
  room: number;
  hand(given: Given[]): void;
}

/** Those who wait for jobs on one endpoint, in the order in which they came. */
export class Takers<Given> {
  #waiting = new Set<Taker<Given>>();

  add(taker: Taker<Given>): void {
    this.#waiting.add(taker);
  }

  /** A set that would become empty is left behind for a new one, for the same reason as in SteadyMap. */
  remove(taker: Taker<Given>): void {
    if (this.#waiting.size > 1) this.#waiting.delete(taker);
    else if (this.#waiting.has(taker)) this.#waiting = new Set();
  }

  has(taker: Taker<Given>): boolean {
    return this.#waiting.has(taker);
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Who gets the next jobs, at most so many: everyone one before anyone two. */
  turns(most: number): Taker<Given>[] {
    const turns: Taker<Given>[] = [];
    // Thousands may wait for a few jobs: no more of them are looked at than get some.
    for (const taker of this.#waiting) {
      if (turns.length >= most) return turns;
      if (taker.room > 0) turns.push(taker);
    }
    let hungry = [...turns];
    for (let round = 1; hungry.length > 0 && turns.length < most; round += 1) {
      if (hungry.some(({ room }) => room <= round)) hungry = hungry.filter(({ room }) => room > round);
      for (const taker of hungry) if (turns.length < most) turns.push(taker);
    }
    return turns;
  }

  /** Ends the wait of those that the test picks, with nothing. */
  release(picked: (taker: Taker<Given>) => boolean): void {
    for (const taker of [...this.#waiting]) {
      if (!picked(taker)) continue;
      this.remove(taker);
      taker.hand([]);
    }
  }
}
