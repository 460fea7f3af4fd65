import type { CancelSignal } from '../support/cancel-signal.ts';

interface Waiting {
  bytes: number;
  grant(): void;
}

interface AccountQueue {
  inFlight: number;
  waiting: Waiting[];
}

export interface AnswerBudgetOptions {
  /** Bytes in flight for one account, and for all. */
  account: number;
  all: number;
  /** Calls back in a later turn of the event loop. */
  defer?(callback: () => void): void;
}

/**
 * The memory of large answers. An account that asks for many gets them one after the other, and accounts take
 * turns. At most one is granted in a turn of the event loop: between two of them, everything else that has
 * arrived is served.
 */
export class AnswerBudget {
  readonly #options: AnswerBudgetOptions;
  /** In the order in which they are served next. */
  readonly #accounts = new Map<string, AccountQueue>();
  readonly #defer: (callback: () => void) => void;
  #inFlight = 0;
  #scheduled = false;
  /** Nothing is granted before this time, by `performance.now()`. */
  #restUntil = 0;

  constructor(options: AnswerBudgetOptions) {
    this.#options = options;
    this.#defer = options.defer ?? ((callback) => void setImmediate(callback));
  }

  /** Bytes of answers that are being sent now. */
  get bytesInFlight(): number {
    return this.#inFlight;
  }

  /** Resolves with the function that returns the memory; undefined if the client has left before. */
  acquire(accountId: string, bytes: number, signal: CancelSignal): Promise<(() => void) | undefined> {
    return new Promise((resolve) => {
      let queue = this.#accounts.get(accountId);
      if (queue === undefined) this.#accounts.set(accountId, (queue = { inFlight: 0, waiting: [] }));
      const { waiting } = queue;
      const leave = (): void => {
        const index = waiting.indexOf(entry);
        if (index !== -1) waiting.splice(index, 1);
        this.#forget(accountId);
        resolve(undefined);
      };
      const entry: Waiting = {
        bytes,
        grant: () => {
          signal.removeEventListener('abort', leave);
          resolve(this.#take(accountId, bytes));
        },
      };
      if (signal.aborted) return leave();
      waiting.push(entry);
      signal.addEventListener('abort', leave, { once: true });
      this.#schedule();
    });
  }

  /** An answer took so long to read, while everything else waited. As long again belongs to the others. */
  rest(milliseconds: number): void {
    this.#restUntil = performance.now() + milliseconds;
  }

  #take(accountId: string, bytes: number): () => void {
    const queue = this.#accounts.get(accountId) as AccountQueue;
    queue.inFlight += bytes;
    this.#inFlight += bytes;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      queue.inFlight -= bytes;
      this.#inFlight -= bytes;
      this.#forget(accountId);
      this.#schedule();
    };
  }

  #forget(accountId: string): void {
    const queue = this.#accounts.get(accountId);
    if (queue?.inFlight === 0 && queue.waiting.length === 0) this.#accounts.delete(accountId);
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    const grant = (): void => {
      const restMs = this.#restUntil - performance.now();
      if (restMs > 0) return void setTimeout(grant, Math.ceil(restMs));
      this.#scheduled = false;
      if (this.#grantOne()) this.#schedule();
    };
    this.#defer(grant);
  }

  #grantOne(): boolean {
    for (const [accountId, queue] of this.#accounts) {
      const [next] = queue.waiting;
      if (next === undefined || !this.#hasRoom(queue, next.bytes)) continue;
      queue.waiting.shift();
      // The account goes to the end of the line.
      this.#accounts.delete(accountId);
      this.#accounts.set(accountId, queue);
      next.grant();
      return true;
    }
    return false;
  }

  /** One answer always fits, however large it is. */
  #hasRoom({ inFlight }: AccountQueue, bytes: number): boolean {
    const { account, all } = this.#options;
    return (
      (inFlight === 0 || inFlight + bytes <= account) &&
      (this.#inFlight === 0 || this.#inFlight + bytes <= all)
    );
  }
}
