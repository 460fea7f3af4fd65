/** A worker that waits for jobs. */
export interface PendingTake<Given> {
  workerId: string;
  /** How many jobs it can take now. */
  room: number;
  resolve(given: Given[]): void;
}

/** Those who wait for jobs on one endpoint, in the order in which they came. */
export class PendingTakes<Given> {
  #waiting = new Set<PendingTake<Given>>();

  add(pendingTake: PendingTake<Given>): void {
    this.#waiting.add(pendingTake);
  }

  /** A set that would become empty is left behind for a new one, for the same reason as in SteadyMap. */
  remove(pendingTake: PendingTake<Given>): void {
    if (this.#waiting.size > 1) this.#waiting.delete(pendingTake);
    else if (this.#waiting.has(pendingTake)) this.#waiting = new Set();
  }

  has(pendingTake: PendingTake<Given>): boolean {
    return this.#waiting.has(pendingTake);
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Who gets the next jobs, at most so many: everyone one before anyone two. */
  roundRobin(most: number): PendingTake<Given>[] {
    const turns: PendingTake<Given>[] = [];
    // Thousands may wait for a few jobs: no more of them are looked at than get some.
    for (const pendingTake of this.#waiting) {
      if (turns.length >= most) return turns;
      if (pendingTake.room > 0) turns.push(pendingTake);
    }
    let hungry = [...turns];
    for (let round = 1; hungry.length > 0 && turns.length < most; round += 1) {
      if (hungry.some(({ room }) => room <= round)) hungry = hungry.filter(({ room }) => room > round);
      for (const pendingTake of hungry) if (turns.length < most) turns.push(pendingTake);
    }
    return turns;
  }

  /** Ends the wait of those that the test picks, with nothing. */
  end(picked: (pendingTake: PendingTake<Given>) => boolean): void {
    for (const pendingTake of [...this.#waiting]) {
      if (!picked(pendingTake)) continue;
      this.remove(pendingTake);
      pendingTake.resolve([]);
    }
  }
}
