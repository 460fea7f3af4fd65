import { constants } from 'node:os';

/** Something that runs until it is stopped. */
export interface Ending {
  readonly done: Promise<void>;
  /** Nothing is left to do for the process when it is done. */
  readonly endsProcess: boolean;
  stop(): Promise<void>;
  abort(): void;
}

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;
/** For handlers to hear of the second signal. */
const ABORT_MS = 2_000;

/** The workers of this process that are not done. */
const working = new Set<Ending>();
let processEnds = false;

/**
 * Ties a worker to its process. The first SIGTERM or SIGINT stops it, the second aborts what it
 * runs. The process ends with it, whatever else the program has open: with 0 when a signal stopped
 * it or it is to be replaced, with 1 when it could not work. Other workers of the process finish
 * what they run before. After `stop()` the program goes on.
 */
export function endWithProcess(worker: Ending): void {
  let signalled = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (signalled) {
      setTimeout(() => process.exit(128 + constants.signals[signal]), ABORT_MS);
      worker.abort();
      return;
    }
    signalled = true;
    // What comes of it is seen below, at `done`.
    worker.stop().catch(() => undefined);
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  working.add(worker);
  void worker.done
    .then(
      () => signalled || worker.endsProcess,
      () => {
        process.exitCode = 1;
        return true;
      },
    )
    .then((ends) => {
      working.delete(worker);
      processEnds ||= ends;
      if (processEnds && working.size === 0) process.exit();
      if (processEnds) for (const other of working) other.stop().catch(() => undefined);
      for (const signal of SIGNALS) process.off(signal, onSignal);
    });
}
