/** A worker that waits for jobs. */
export interface Taker<Given> {
  workerId: string;
  /** How many jobs it can take now. */
  room: number;
  hand(given: Given[]): void;
}

/** Those who wait for jobs on one endpoint, in the order in which they came. */
export class Takers<Given> {
  readonly #waiting = new Set<Taker<Given>>();

  add(taker: Taker<Given>): void {
    this.#waiting.add(taker);
  }

  remove(taker: Taker<Given>): void {
    this.#waiting.delete(taker);
  }

  has(taker: Taker<Given>): boolean {
    return this.#waiting.has(taker);
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** How many jobs all of them together can take. */
  room(): number {
    let room = 0;
    for (const taker of this.#waiting) room += taker.room;
    return room;
  }

  /** Who gets the next job: everyone one before anyone two. */
  *turns(): Generator<Taker<Given>, void, void> {
    const taken = new Map<Taker<Given>, number>();
    for (let some = true; some; ) {
      some = false;
      for (const taker of this.#waiting) {
        const count = taken.get(taker) ?? 0;
        if (count >= taker.room) continue;
        taken.set(taker, count + 1);
        some = true;
        yield taker;
      }
    }
  }

  /** Ends the wait of those that the test picks, with nothing. */
  release(picked: (taker: Taker<Given>) => boolean): void {
    for (const taker of [...this.#waiting]) {
      if (!picked(taker)) continue;
      this.#waiting.delete(taker);
      taker.hand([]);
    }
  }
}
