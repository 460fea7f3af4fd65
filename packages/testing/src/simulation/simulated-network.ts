import { LightCancelSignal } from '../../../cloud/src/support/cancel-signal.ts';
import type { CancelSignal } from '../../../cloud/src/support/cancel-signal.ts';
import type { SeededRandom } from '../safety/seeded-random.ts';
import type { SimulatedProcess, VirtualTime } from './virtual-time.ts';

/** What a request can reach: a server that may be down, and a new one after each restart. */
export interface Reachable {
  /** Undefined while it is down. */
  readonly process: SimulatedProcess | undefined;
  /** Called when the process ends. Returns a function that unsubscribes. */
  onDown(listener: () => void): () => void;
}

export class NetworkError extends Error {}

const MAX_LATENCY_MS = 20;
const REFUSED_AFTER_MS = 5;

/**
 * Carries requests to servers and their answers back. Both may be late or lost, and a request may come twice.
 */
export class SimulatedNetwork {
  readonly #time: VirtualTime;
  readonly #random: SeededRandom;
  /** The share of messages that are lost. */
  lossRate = 0;
  /** The share of requests that come twice, where the sender allows it. */
  duplicateRate = 0;

  constructor(time: VirtualTime, random: SeededRandom) {
    this.#time = time;
    this.#random = random;
  }

  /**
   * Resolves with the answer, in the process of the sender. Rejects where the server cannot be reached, goes
   * down, or does not answer in time: then nobody knows whether it has acted.
   */
  request<T>(
    from: SimulatedProcess | undefined,
    server: Reachable,
    { timeout, mayRepeat = false }: { timeout: number; mayRepeat?: boolean },
    handle: (signal: CancelSignal) => Promise<T>,
  ): Promise<T> {
    const time = this.#time;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const signal = new LightCancelSignal();
    let isOver = false;
    const over = (settle: () => void, wait: number): void => {
      if (isOver) return;
      isOver = true;
      unsubscribe();
      timer.isCancelled = true;
      time.after(wait, from, settle);
    };
    const fail = (why: string, wait = this.#latency()): void =>
      over(() => reject(new NetworkError(why)), wait);
    const unsubscribe = server.onDown(() => fail('the connection broke'));
    const timer = time.after(timeout, undefined, () => {
      fail('no answer in time', 0);
      // The server notices that the connection is gone.
      time.after(this.#latency(), target, () => signal.abort());
    });
    const target = server.process;
    const deliver = (isFirst: boolean): void => {
      if (target === undefined || target.hasCrashed)
        return fail('the connection was refused', REFUSED_AFTER_MS);
      handle(isFirst ? signal : new LightCancelSignal()).then(
        (answer) => {
          if (!isFirst) return;
          if (this.#random.chance(this.lossRate)) return fail('the answer was lost');
          over(() => resolve(answer), this.#latency());
        },
        (error: unknown) => {
          if (isFirst) over(() => reject(error), this.#latency());
        },
      );
    };
    if (this.#random.chance(this.lossRate)) {
      fail('the request was lost');
      return promise;
    }
    const latency = this.#latency();
    time.after(latency, target, () => deliver(true));
    // Together with the first one, or later.
    if (mayRepeat && this.#random.chance(this.duplicateRate))
      time.after(this.#random.chance(0.5) ? latency : this.#latency() * 50, target, () => deliver(false));
    return promise;
  }

  #latency(): number {
    return this.#random.next() ** 3 * MAX_LATENCY_MS;
  }
}
