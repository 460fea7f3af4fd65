/** Handlers that never wait let the rest of the worker have a turn after this time: a cancel has to be heard, and results have to leave. */
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

/** Lets everything run that has happened until now. */
export function nextEventLoopTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
