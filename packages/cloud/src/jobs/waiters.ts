import type { Departure } from './departure.ts';

/** Everything waits by being woken: a poll, a synchronous call or a stream says what it waits for, and sleeps until that happens or its time is over. */
export class Waiters {
  readonly #waiting = new Map<string, Set<() => void>>();

  /** Resolves when `key` is woken, when the time is over, or when the caller gives up. */
  wait(key: string, milliseconds: number, signal?: Departure): Promise<void> {
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(key) ?? new Set();
      this.#waiting.set(key, waiting);
      const done = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        waiting.delete(done);
        if (waiting.size === 0 && this.#waiting.get(key) === waiting) this.#waiting.delete(key);
        resolve();
      };
      const timer = setTimeout(done, milliseconds);
      waiting.add(done);
      signal?.addEventListener('abort', done, { once: true });
      if (signal?.aborted === true) done();
    });
  }

  wake(key: string): void {
    const waiting = this.#waiting.get(key);
    if (waiting !== undefined) for (const done of [...waiting]) done();
  }

  wakeWhere(picked: (key: string) => boolean): void {
    for (const key of [...this.#waiting.keys()]) if (picked(key)) this.wake(key);
  }

  /** Wakes everyone: the server stops. */
  wakeAll(): void {
    for (const key of [...this.#waiting.keys()]) this.wake(key);
  }
}
