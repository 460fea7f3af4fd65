/** A worker that waits for jobs. */
export interface PendingTake<Given> {
  workerId: string;
  /** How many jobs it can take now. */
  room: number;
  resolve(given: Given[]): void;
}

/** The pending takes of one endpoint, in order of arrival. */
export class PendingTakes<Given> {
  #waiting = new Set<PendingTake<Given>>();

  add(pendingTake: PendingTake<Given>): void {
    this.#waiting.add(pendingTake);
  }

  /** A set that would become empty is replaced by a new one, for the same reason as in SteadyMap. */
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

  /** The takes that get the next jobs, at most this many: each one before any gets two. */
  roundRobin(most: number): PendingTake<Given>[] {
    const turns: PendingTake<Given>[] = [];
    // Thousands may wait for a few jobs: no more are visited than get some.
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

  /** Ends the matching takes without jobs. */
  end(picked: (pendingTake: PendingTake<Given>) => boolean): void {
    for (const pendingTake of [...this.#waiting]) {
      if (!picked(pendingTake)) continue;
      this.remove(pendingTake);
      pendingTake.resolve([]);
    }
  }
}
