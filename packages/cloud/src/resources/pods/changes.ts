/** Who waits for a pod to change is woken when it has, here or, as far as that is told, on another server. */
export class PodChanges {
  readonly #waiting = new Map<string, Set<() => void>>();

  tell(podId: string): void {
    for (const wake of [...(this.#waiting.get(podId) ?? [])]) wake();
  }

  /** Begins to wait at once: whoever looks after that misses nothing. Resolves at the next change, or when the time is over. */
  next(podId: string, milliseconds: number, signal?: AbortSignal): { changed: Promise<void>; leave(): void } {
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting = this.#waiting.get(podId) ?? new Set();
    this.#waiting.set(podId, waiting);
    const leave = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', leave);
      waiting.delete(leave);
      if (waiting.size === 0 && this.#waiting.get(podId) === waiting) this.#waiting.delete(podId);
      resolve();
    };
    const timer = setTimeout(leave, milliseconds);
    waiting.add(leave);
    signal?.addEventListener('abort', leave, { once: true });
    if (signal?.aborted === true) leave();
    return { changed: promise, leave };
  }
}
