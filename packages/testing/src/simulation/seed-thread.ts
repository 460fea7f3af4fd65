import { parentPort, workerData } from 'node:worker_threads';
import { simulate } from './simulation.ts';
import { SimulationDatabase } from './simulation-database.ts';

/** Every so-manieth seed from the first to the last. */
export interface SeedRange {
  first: number;
  last: number;
  step: number;
}

/** A seed that broke a rule. */
export interface FailedSeed {
  seed: number;
  message: string;
  trace: string[];
}

// A thread of its own: time, timers and random numbers are those of the run while it lasts.
const { first, last, step } = workerData as SeedRange;
const database = await SimulationDatabase.create();
for (let seed = first; seed <= last; seed += step) {
  const { violation, trace } = await simulate({ seed, database });
  if (violation === undefined) continue;
  parentPort?.postMessage({ seed, message: violation.message, trace } satisfies FailedSeed);
  break;
}
