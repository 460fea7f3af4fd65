import type { JobPool } from './job-pool.ts';
import { errorMessage } from './error-report.ts';
import type { WorkerLog } from './worker-log.ts';
import { delay } from './delay.ts';

type ConcurrencyFunction = (current: number) => number | Promise<number>;

/** Asks how many jobs may run at a time. With 0, none are taken until the next call. */
export async function updateConcurrency(
  ask: ConcurrencyFunction,
  pool: JobPool,
  log: WorkerLog,
): Promise<void> {
  try {
    const wanted = await ask(pool.concurrency);
    if (!Number.isInteger(wanted) || wanted < 0)
      throw new RangeError(`it answered ${String(wanted)}, which is not a whole number from 0`);
    if (wanted !== pool.concurrency) pool.concurrency = wanted;
  } catch (error) {
    log.warn(`The concurrency stays ${pool.concurrency}; its function failed: ${errorMessage(error)}`);
  }
}

/** Asks repeatedly until the signal is aborted. */
export async function pollConcurrency(
  ask: ConcurrencyFunction,
  pool: JobPool,
  everyMs: number,
  log: WorkerLog,
  signal: AbortSignal,
): Promise<void> {
  for (await delay(everyMs, signal); !signal.aborted; await delay(everyMs, signal))
    await updateConcurrency(ask, pool, log);
}
