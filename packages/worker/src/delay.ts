/**
 * Handlers that never await yield to the rest of the worker after this time, so that cancellations are read
 * and results are sent.
 */
export const MAX_TURN_MS = 10;

/** Resolves after the time, or as soon as the signal is aborted. */
export function delay(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    if (signal?.aborted === true) done();
    else signal?.addEventListener('abort', done, { once: true });
  });
}

/** Yields until everything that is pending in the event loop has run. */
export function nextEventLoopTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
