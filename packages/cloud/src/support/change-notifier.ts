/** Wakes waiters when something changes, by id. */
export class ChangeNotifier {
  readonly #waiting = new Map<string, Set<() => void>>();

  notify(id: string): void {
    for (const wake of [...(this.#waiting.get(id) ?? [])]) wake();
  }

  /**
   * Subscribes at once, so a caller that checks the state afterwards misses nothing. Resolves at the next
   * change, or after the timeout.
   */
  waitForNext(
    id: string,
    milliseconds: number,
    signal?: AbortSignal,
  ): { changed: Promise<void>; leave(): void } {
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiting);
    const leave = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', leave);
      waiting.delete(leave);
      if (waiting.size === 0 && this.#waiting.get(id) === waiting) this.#waiting.delete(id);
      resolve();
    };
    const timer = setTimeout(leave, milliseconds);
    waiting.add(leave);
    signal?.addEventListener('abort', leave, { once: true });
    if (signal?.aborted === true) leave();
    return { changed: promise, leave };
  }
}
