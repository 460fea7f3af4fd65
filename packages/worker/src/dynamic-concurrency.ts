import type { JobPool } from './job-pool.ts';
import { errorMessage } from './error-report.ts';
import type { WorkerLog } from './worker-log.ts';
import { delay } from './delay.ts';

type ConcurrencyFunction = (current: number) => number | Promise<number>;

/** Asks how many jobs shall run at a time. 0 takes none until it is asked again. */
export async function updateConcurrency(
  ask: ConcurrencyFunction,
  bench: JobPool,
  log: WorkerLog,
): Promise<void> {
  try {
    const wanted = await ask(bench.concurrency);
    if (!Number.isInteger(wanted) || wanted < 0)
      throw new RangeError(`it answered ${String(wanted)}, which is not a whole number from 0`);
    if (wanted !== bench.concurrency) bench.concurrency = wanted;
  } catch (error) {
    log.warn(`The concurrency stays ${bench.concurrency}; its function failed: ${errorMessage(error)}`);
  }
}

/** Asks again and again, until the signal ends it. */
export async function pollConcurrency(
  ask: ConcurrencyFunction,
  bench: JobPool,
  everyMs: number,
  log: WorkerLog,
  signal: AbortSignal,
): Promise<void> {
  for (await delay(everyMs, signal); !signal.aborted; await delay(everyMs, signal))
    await updateConcurrency(ask, bench, log);
}
