import { idleShare } from './machine-load.ts';
import { runProgram } from './child-program.ts';

const SAMPLE_MS = 100;
const MAX_SAMPLES = 30;
const IDLE = 0.9;

/**
 * What was written before must not be on its way to the disk while something is measured, and what has just
 * been started must be up.
 */
export async function waitUntilIdle(): Promise<void> {
  await runProgram('sync', []);
  for (let look = 0; look < MAX_SAMPLES; look += 1) if ((await idleShare(SAMPLE_MS)) > IDLE) return;
}
