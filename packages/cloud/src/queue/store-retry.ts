import { BerthError } from '../support/errors.ts';

/**
 * How long a store may be unavailable before the caller gets an error. A worker has nowhere else to send its
 * result and waits minutes for an answer; a client can retry.
 */
export const STORE_RETRY_MS = { client: 5_000, worker: 60_000 };
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 2_000;

/**
 * Retries until the store answers. Only for work that may safely run twice: every transition checks the
 * current job, so a change that was already committed is not made again.
 */
export function withStoreRetries<T>(
  work: () => Promise<T>,
  patience: number = STORE_RETRY_MS.worker,
): Promise<T> {
  // A monotonic clock: the wall clock may be set meanwhile.
  const until = performance.now() + patience;
  const isClient = patience < STORE_RETRY_MS.worker;
  return work().catch((error: unknown) => retry(work, error, until, isClient));
}

async function retry<T>(
  work: () => Promise<T>,
  failure: unknown,
  until: number,
  isClient: boolean,
): Promise<T> {
  let last = failure;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, MAX_PAUSE_MS)) {
    // A client gets the error at once when nothing can be written; a worker has nowhere else to send its result.
    const isRefused = isClient && last instanceof BerthError && last.refusesWrites;
    if (isRefused || performance.now() + pause >= until) throw last;
    await new Promise((resolve) => setTimeout(resolve, pause));
    try {
      return await work();
    } catch (error) {
      last = error;
    }
  }
}
