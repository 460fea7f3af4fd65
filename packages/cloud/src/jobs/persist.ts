import type { Clock } from '../support/clock.ts';

/** How long a store may be away before whoever waits is told. A worker has nowhere else to bring its result, and waits minutes for an answer; a client can try again. */
export const PATIENCE = { client: 5_000, worker: 60_000 };
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;

/**
 * Tries until the store answers. Only for work that may safely run twice: every rule looks at
 * the job as it is, so a change that has happened already is not made again.
 */
export async function persist<T>(work: () => Promise<T>, clock: Clock, patience: number = PATIENCE.worker): Promise<T> {
  let left = patience;
  let paused = 0;
  let since = clock.now();
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    try {
      return await work();
    } catch (error) {
      // A clock that is set back meanwhile gives nobody more patience: a pause took its time, whatever the clock says.
      left -= Math.max(paused, clock.now() - since);
      if (left <= pause) throw error;
      since = clock.now();
      await new Promise((resolve) => setTimeout(resolve, pause));
      paused = pause;
    }
  }
}
