import { bindToProcess } from './process-lifecycle.ts';
import type { Stoppable } from './process-lifecycle.ts';
import type { Handler } from './handler.ts';
import { runLocally, parseTestInput } from './local-run.ts';
import { validateOptions } from './worker-options.ts';
import type { Options } from './worker-options.ts';
import { WorkerRuntime } from './worker-runtime.ts';

export type { Context, Handler, Job } from './handler.ts';
export type { ChannelChoice, FitnessCheck, Options } from './worker-options.ts';
export { UnhealthyError } from './fitness-checks.ts';
export { VERSION } from './version.ts';

export interface Worker {
  /** Takes no more jobs; running jobs are finished and their results sent. Resolves then. */
  stop(): Promise<void>;
  /** Resolves when the worker has stopped, for whatever reason. Rejects where it could not work at all. */
  readonly done: Promise<void>;
}

/**
 * Takes the jobs of an endpoint and runs the handler on each. Without a platform, it runs the handler once on
 * a test input and prints the result.
 */
export function serve<Input = unknown>(handler: Handler<Input>, options: Options = {}): Worker {
  validateOptions(options);
  const testInput = parseTestInput(process.argv);
  const isLocal =
    testInput !== undefined || (options.env ?? process.env)['RUNPOD_WEBHOOK_GET_JOB'] === undefined;
  const worker: Stoppable = isLocal
    ? local(handler as Handler, options, testInput)
    : new WorkerRuntime(handler as Handler, options);
  if (options.signals !== false) bindToProcess(worker);
  return { stop: () => worker.stop(), done: worker.done };
}

function local(handler: Handler, options: Options, testInput: string | undefined): Stoppable {
  const interrupted = new AbortController();
  const done = runLocally(handler, options, testInput, interrupted.signal);
  const stop = async (): Promise<void> => {
    interrupted.abort();
    await done;
  };
  return { done, stop, abort: () => interrupted.abort(), exitsProcess: true };
}
