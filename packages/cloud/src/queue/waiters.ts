import { PairMap } from '../support/pair-map.ts';
import { callAfter } from '../support/shared-timer.ts';
import type { CancelSignal } from '../support/cancel-signal.ts';

/**
 * Everything waits by being woken: a poll, a synchronous call or a stream says what it waits for, and sleeps
 * until that happens or its time is over. What it waits for is something of an endpoint: a job, a worker.
 * Whoever wakes it may tell it the news.
 */
export class Waiters<Of, News = never> {
  readonly #waiting = new PairMap<string, Of, Set<(news?: News) => void>>();

  /** Resolves when it is woken, when the time is over, or when the caller gives up. */
  wait(endpointId: string, of: Of, milliseconds: number, signal?: CancelSignal): Promise<News | undefined> {
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(endpointId, of) ?? new Set();
      this.#waiting.set(endpointId, of, waiting);
      const done = (news?: News): void => {
        notLater();
        signal?.removeEventListener('abort', leave);
        waiting.delete(done);
        if (waiting.size === 0 && this.#waiting.get(endpointId, of) === waiting)
          this.#waiting.delete(endpointId, of);
        resolve(news);
      };
      const leave = (): void => done();
      const notLater = callAfter(milliseconds, leave);
      waiting.add(done);
      signal?.addEventListener('abort', leave, { once: true });
      if (signal?.aborted === true) done();
    });
  }

  wake(endpointId: string, of: Of, news?: News): void {
    const waiting = this.#waiting.get(endpointId, of);
    if (waiting !== undefined) for (const done of [...waiting]) done(news);
  }

  /** Wakes everyone who waits for something of this endpoint. */
  wakeEndpoint(endpointId: string): void {
    for (const waiting of [...this.#waiting.valuesOf(endpointId)]) for (const done of [...waiting]) done();
  }

  /** Wakes everyone: the server stops, or may have missed what they wait for. */
  wakeAll(): void {
    for (const waiting of this.#waiting.values()) for (const done of [...waiting]) done();
  }
}
