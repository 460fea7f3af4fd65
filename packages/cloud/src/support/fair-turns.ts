/**
 * For work that would keep everybody else waiting: at most so many pieces are begun in a turn of the event loop, so that
 * everything else that has arrived comes in between, and those who have some take turns.
 */
export class FairTurns {
  /** In the order in which they are served next. */
  readonly #waiting = new Map<string, (() => void)[]>();
  readonly #perTurn: number;
  readonly #defer: (callback: () => void) => void;
  #scheduled = false;

  constructor(
    perTurn = 1,
    defer: (callback: () => void) => void = (callback) => void setImmediate(callback),
  ) {
    this.#perTurn = perTurn;
    this.#defer = defer;
  }

  /** Resolves when a piece of this owner may be done. */
  next(owner: string): Promise<void> {
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(owner);
      if (waiting === undefined) this.#waiting.set(owner, [resolve]);
      else waiting.push(resolve);
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#defer(() => {
      this.#scheduled = false;
      for (let begun = 0; begun < this.#perTurn && this.#waiting.size > 0; begun += 1) this.#beginOne();
      if (this.#waiting.size > 0) this.#schedule();
    });
  }

  #beginOne(): void {
    const [first] = this.#waiting;
    if (first === undefined) return;
    const [owner, waiting] = first;
    const resolve = waiting.shift();
    // The owner goes to the end of the line.
    this.#waiting.delete(owner);
    if (waiting.length > 0) this.#waiting.set(owner, waiting);
    resolve?.();
  }
}

/** Of the whole server, for work that takes milliseconds: large bodies, and the output of instances. */
export const heavyTurns = new FairTurns();
