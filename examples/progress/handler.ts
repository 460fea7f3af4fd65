import { setTimeout as pause } from 'node:timers/promises';

interface Job {
  input: { steps?: number; stepMs?: number };
}

interface Context {
  signal: AbortSignal;
  progress(value: unknown): void;
}

/**
 * A slow job that reports progress. The signal is aborted when the job is cancelled or times out, and
 * ends the pause.
 */
export default async function bake(
  { input: { steps = 5, stepMs = 1000 } }: Job,
  { signal, progress }: Context,
) {
  for (let step = 1; step <= steps; step += 1) {
    await pause(stepMs, undefined, { signal });
    progress({ step, of: steps });
  }
  return { baked: steps };
}
