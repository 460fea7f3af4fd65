import { PairMap } from '../support/pair-map.ts';
import { callAfter } from '../support/shared-timer.ts';
import type { CancelSignal } from '../support/cancel-signal.ts';

/**
 * Nothing polls: a long poll, a synchronous call or a stream waits for a key of an endpoint (a job, a worker)
 * and sleeps until it is woken or its time is over. A wake may carry a value.
 */
export class Waiters<Of, Value = never> {
  readonly #waiting = new PairMap<string, Of, Set<(value?: Value) => void>>();

  /** Resolves when it is woken, when the time is over, or when the signal is cancelled. */
  wait(endpointId: string, of: Of, milliseconds: number, signal?: CancelSignal): Promise<Value | undefined> {
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(endpointId, of) ?? new Set();
      this.#waiting.set(endpointId, of, waiting);
      const done = (value?: Value): void => {
        clearTimer();
        signal?.removeEventListener('abort', leave);
        waiting.delete(done);
        if (waiting.size === 0 && this.#waiting.get(endpointId, of) === waiting)
          this.#waiting.delete(endpointId, of);
        resolve(value);
      };
      const leave = (): void => done();
      const clearTimer = callAfter(milliseconds, leave);
      waiting.add(done);
      signal?.addEventListener('abort', leave, { once: true });
      if (signal?.aborted === true) done();
    });
  }

  wake(endpointId: string, of: Of, value?: Value): void {
    const waiting = this.#waiting.get(endpointId, of);
    if (waiting !== undefined) for (const done of [...waiting]) done(value);
  }

  /** Wakes all waiters of this endpoint. */
  wakeEndpoint(endpointId: string): void {
    for (const waiting of [...this.#waiting.valuesOf(endpointId)]) for (const done of [...waiting]) done();
  }

  /** Wakes all waiters: the server stops, or may have missed notifications. */
  wakeAll(): void {
    for (const waiting of this.#waiting.values()) for (const done of [...waiting]) done();
  }
}
