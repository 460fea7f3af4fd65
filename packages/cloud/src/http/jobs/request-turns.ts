import { FairTurns } from '../../support/fair-turns.ts';

/**
 * Requests of one account that begin at once in one turn of the event loop: 64 take 2 to 4 ms. Those beyond it wait for
 * later turns, in which accounts alternate.
 */
export const REQUESTS_PER_TURN = 64;

/**
 * Keeps the requests of one account, however many arrive together, from being served before everything else. An account
 * with fewer pays nothing.
 */
export class RequestTurns {
  readonly #begun = new Map<string, number>();
  readonly #waiting = new FairTurns(REQUESTS_PER_TURN);

  /** Undefined where the request may begin at once. */
  next(accountId: string): Promise<void> | undefined {
    if (this.#begun.size === 0) setImmediate(() => this.#begun.clear());
    const begun = (this.#begun.get(accountId) ?? 0) + 1;
    this.#begun.set(accountId, begun);
    return begun <= REQUESTS_PER_TURN ? undefined : this.#waiting.next(accountId);
  }
}
