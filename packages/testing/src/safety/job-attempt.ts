import { setTimeout as pause } from 'node:timers/promises';
import type { HistoryEvent } from './job-history.ts';
import { monotonicMs } from './job-history.ts';

/** What a job asks of these workers. The value is unique in a run. */
export interface SafetyJobInput {
  value: string;
  milliseconds: number;
  chunks: number;
  progress: boolean;
  fails: boolean;
}

export interface TakenJob {
  id: string;
  input: SafetyJobInput;
}

/** How an attempt reports to the server; each call resolves when that is done or given up. */
export interface AttemptReporter {
  progress(output: unknown): Promise<void>;
  /** True where the server acknowledged the chunk. */
  chunk(chunk: unknown): Promise<boolean>;
  /** Until the server has acknowledged it, over any number of connections. */
  result(body: { output?: unknown; error?: unknown }): Promise<void>;
}

/** One attempt at a job. Its output names the attempt, so that it can be attributed. */
export async function runAttempt(
  { id, input }: TakenJob,
  marker: string,
  line: AttemptReporter,
  report: (event: HistoryEvent) => void,
): Promise<void> {
  const { value, milliseconds, chunks, progress, fails } = input;
  report({ kind: 'execution', id, value, marker, at: monotonicMs() });
  const parts = chunks + 1;
  for (let number = 0; number < chunks; number += 1) {
    await pause(milliseconds / parts);
    const kept = await line.chunk({ output: { marker, number } });
    report({ kind: 'chunk', id, marker, number, kept });
  }
  if (progress) await line.progress({ marker, done: true });
  await pause(milliseconds / parts);
  const said = { value, marker };
  report({
    kind: 'result',
    id,
    marker,
    output: fails ? null : JSON.stringify(said),
    error: fails ? JSON.stringify(said) : null,
    at: monotonicMs(),
  });
  await line.result(fails ? { error: said } : { output: said });
}
