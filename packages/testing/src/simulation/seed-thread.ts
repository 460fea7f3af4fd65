import { parentPort, workerData } from 'node:worker_threads';
import { simulate } from './simulation.ts';
import { SimulationDatabase } from './simulation-database.ts';

/** Every so-manieth seed from the first to the last. */
export interface SeedRange {
  first: number;
  last: number;
  step: number;
}

/** What came of a seed. */
export interface SeedReport {
  seed: number;
  hash: string;
  /** Why it failed. */
  failure?: string;
}

// A thread of its own: time, timers and random numbers are those of the run while it lasts.
const { first, last, step } = workerData as SeedRange;
const report = (message: SeedReport): void => parentPort?.postMessage(message);
const database = await SimulationDatabase.create();
for (let seed = first; seed <= last; seed += step) {
  const { violation, trace, hash } = await simulate({ seed, database });
  report({
    seed,
    hash,
    ...(violation !== undefined && { failure: [violation.message, ...trace].join('\n') }),
  });
  if (violation !== undefined) break;
}
