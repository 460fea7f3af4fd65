/** Something that may take so long and no longer. */
export interface Timed {
  /** It has. Said once. */
  overdue(): void;
}

/** One that is under way, between its neighbours in the order of their beginning. */
export interface Deadline {
  timed: Timed | undefined;
  due: number;
  before: Deadline | undefined;
  after: Deadline | undefined;
}

/**
 * Watches over all requests with one timer: all have the same time, so whoever began first is
 * due first. A timer for each of them would cost more than all of them ever tell.
 *
 * They are a chain and not a map: a map that is written at every request leaves its outgrown
 * tables behind, and those keep what they name alive until the whole heap is looked through.
 * Measured, that made the collector's share of the time four times as large.
 */
export class Deadlines {
  readonly milliseconds: number;
  #first: Deadline | undefined;
  #last: Deadline | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(milliseconds: number) {
    this.milliseconds = milliseconds;
  }

  begin(timed: Timed): Deadline {
    const deadline: Deadline = {
      timed,
      due: performance.now() + this.milliseconds,
      before: this.#last,
      after: undefined,
    };
    if (this.#last === undefined) this.#first = deadline;
    else this.#last.after = deadline;
    this.#last = deadline;
    if (this.#timer === undefined) this.#arm(this.milliseconds);
    return deadline;
  }

  /** It is done, in time or not. Said twice, it counts once. */
  end(deadline: Deadline): void {
    if (deadline.timed === undefined) return;
    const { before, after } = deadline;
    if (before === undefined) this.#first = after;
    else before.after = after;
    if (after === undefined) this.#last = before;
    else after.before = before;
    deadline.timed = deadline.before = deadline.after = undefined;
  }

  #arm(milliseconds: number): void {
    this.#timer = setTimeout(() => this.#look(), Math.max(1, Math.ceil(milliseconds)));
    // Who is under way has a connection, and that keeps the process. A timer of someone who is done must not.
    this.#timer.unref();
  }

  #look(): void {
    this.#timer = undefined;
    const now = performance.now();
    for (let first = this.#first; first !== undefined; first = this.#first) {
      if (first.due > now) return this.#arm(first.due - now);
      const { timed } = first;
      this.end(first);
      timed?.overdue();
    }
  }
}
