/** An exchange with a deadline. */
export interface DeadlineListener {
  /** The deadline has passed. Called once. */
  overdue(): void;
}

/** A running deadline: an element of a list in order of start. */
export interface Deadline {
  listener: DeadlineListener | undefined;
  due: number;
  previous: Deadline | undefined;
  next: Deadline | undefined;
}

/**
 * Watches all requests with one timer: all have the same time limit, so the first to start is the
 * first to be due. A timer for each request would cost more.
 *
 * It is a linked list and not a map: a map that changes with every request leaves old hash tables
 * behind, which keep their entries alive until a full collection. Measured, that made garbage
 * collection take four times as long.
 */
export class RequestDeadlines {
  readonly milliseconds: number;
  #first: Deadline | undefined;
  #last: Deadline | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(milliseconds: number) {
    this.milliseconds = milliseconds;
  }

  start(listener: DeadlineListener): Deadline {
    const deadline: Deadline = {
      listener,
      due: performance.now() + this.milliseconds,
      previous: this.#last,
      next: undefined,
    };
    if (this.#last === undefined) this.#first = deadline;
    else this.#last.next = deadline;
    this.#last = deadline;
    if (this.#timer === undefined) this.#arm(this.milliseconds);
    return deadline;
  }

  /** May be called twice. */
  clear(deadline: Deadline): void {
    if (deadline.listener === undefined) return;
    const { previous, next } = deadline;
    if (previous === undefined) this.#first = next;
    else previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
    deadline.listener = deadline.previous = deadline.next = undefined;
  }

  #arm(milliseconds: number): void {
    this.#timer = setTimeout(() => this.#expire(), Math.max(1, Math.ceil(milliseconds)));
    // Requests in flight have a connection, which keeps the process alive. The timer of a finished request
    // must not.
    this.#timer.unref();
  }

  #expire(): void {
    this.#timer = undefined;
    const now = performance.now();
    for (let first = this.#first; first !== undefined; first = this.#first) {
      if (first.due > now) return this.#arm(first.due - now);
      const { listener } = first;
      this.clear(first);
      listener?.overdue();
    }
  }
}
