import { constants } from 'node:os';

/** Something that runs until it is stopped. */
export interface Stoppable {
  readonly done: Promise<void>;
  /** When it is done, the process has nothing left to do. */
  readonly exitsProcess: boolean;
  stop(): Promise<void>;
  abort(): void;
}

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;
/** Time for handlers to react to the second signal. */
const ABORT_MS = 2_000;

/** The workers of this process that are not done. */
const activeWorkers = new Set<Stoppable>();
let processIsExiting = false;

/**
 * Ties a worker to its process. The first SIGTERM or SIGINT stops it, the second aborts its running jobs. The
 * process exits with the worker, whatever else the program has open: with 0 after a signal or when it asked
 * to be replaced, with 1 when it could not work. Other workers of the process finish their jobs first. After
 * `stop()` the program continues.
 */
export function bindToProcess(worker: Stoppable): void {
  let signalled = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (signalled) {
      setTimeout(() => process.exit(128 + constants.signals[signal]), ABORT_MS);
      worker.abort();
      return;
    }
    signalled = true;
    // The outcome is handled below, at `done`.
    worker.stop().catch(() => undefined);
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  activeWorkers.add(worker);
  void worker.done
    .then(
      () => signalled || worker.exitsProcess,
      () => {
        process.exitCode = 1;
        return true;
      },
    )
    .then((ends) => {
      activeWorkers.delete(worker);
      processIsExiting ||= ends;
      if (processIsExiting && activeWorkers.size === 0) process.exit();
      if (processIsExiting) for (const other of activeWorkers) other.stop().catch(() => undefined);
      for (const signal of SIGNALS) process.off(signal, onSignal);
    });
}
