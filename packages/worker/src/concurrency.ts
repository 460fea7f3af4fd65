import type { Bench } from './bench.ts';
import { messageOf } from './failure.ts';
import type { Log } from './log.ts';
import { pause } from './pause.ts';

type Asked = (current: number) => number | Promise<number>;

/** Asks how many jobs shall run at a time. 0 takes none until it is asked again. */
export async function askConcurrency(ask: Asked, bench: Bench, log: Log): Promise<void> {
  try {
    const wanted = await ask(bench.concurrency);
    if (!Number.isInteger(wanted) || wanted < 0)
      throw new RangeError(`it answered ${String(wanted)}, which is not a whole number from 0`);
    if (wanted !== bench.concurrency) bench.concurrency = wanted;
  } catch (error) {
    log.warn(`The concurrency stays ${bench.concurrency}; its function failed: ${messageOf(error)}`);
  }
}

/** Asks again and again, until the signal ends it. */
export async function followConcurrency(
  ask: Asked,
  bench: Bench,
  everyMs: number,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  for (await pause(everyMs, signal); !signal.aborted; await pause(everyMs, signal))
    await askConcurrency(ask, bench, log);
}
