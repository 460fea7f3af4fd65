import { endWithProcess } from './ending.ts';
import type { Ending } from './ending.ts';
import type { Handler } from './handler.ts';
import { runLocally, testInputOf } from './local.ts';
import { checkOptions } from './options.ts';
import type { Options } from './options.ts';
import { Shift } from './shift.ts';

export type { Context, Handler, Job } from './handler.ts';
export type { ChannelChoice, FitnessCheck, Options } from './options.ts';
export { UnhealthyError } from './fitness.ts';
export { VERSION } from './version.ts';

export interface Worker {
  /** Takes no more jobs; those that run are finished and their results sent. Resolves then. */
  stop(): Promise<void>;
  /** Resolves when the worker has stopped, for whatever reason. Rejects where it could not work at all. */
  readonly done: Promise<void>;
}

/**
 * Takes the jobs of an endpoint and runs the handler on each. Where there is no platform around,
 * runs it once on a test input and prints the result.
 */
export function serve<Input = unknown>(handler: Handler<Input>, options: Options = {}): Worker {
  checkOptions(options);
  const testInput = testInputOf(process.argv);
  const isLocal =
    testInput !== undefined || (options.env ?? process.env)['RUNPOD_WEBHOOK_GET_JOB'] === undefined;
  const worker: Ending = isLocal
    ? local(handler as Handler, options, testInput)
    : new Shift(handler as Handler, options);
  if (options.signals !== false) endWithProcess(worker);
  return { stop: () => worker.stop(), done: worker.done };
}

function local(handler: Handler, options: Options, testInput: string | undefined): Ending {
  const interrupted = new AbortController();
  const done = runLocally(handler, options, testInput, interrupted.signal);
  const stop = async (): Promise<void> => {
    interrupted.abort();
    await done;
  };
  return { done, stop, abort: () => interrupted.abort(), endsProcess: true };
}
