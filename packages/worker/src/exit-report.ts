import { spawnSync } from 'node:child_process';
import { AsyncLocalStorage } from 'node:async_hooks';
import type { JobRun } from './job-run.ts';

/** The run whose handler is at work, also behind its promises and timers. */
export const currentRun = new AsyncLocalStorage<JobRun>();

export interface ExitReportOptions {
  /** Whether the run belongs to this worker. */
  has(run: JobRun): boolean;
  doneUrl(jobId: string): string;
  apiKey: string;
  /** The body of the result. */
  body(error: Error): string;
  onReport(jobId: string, message: string): void;
}

const REPORT_MS = 10_000;

/**
 * A handler that ends the process fails its job. Without this the job would be that of a lost worker, and the
 * next worker would run into the same end. While a process exits nothing can be awaited, so a second one
 * posts the result. Returns what turns it off.
 */
export function reportExits(options: ExitReportOptions): () => void {
  const onExit = (code: number): void => {
    const run = currentRun.getStore();
    if (run === undefined || run.handlerEnded || run.stopped || !options.has(run)) return;
    const error = new Error(`the handler ended the process with exit code ${code}`);
    error.name = 'ProcessExit';
    options.onReport(run.job.id, error.message);
    spawnSync(process.execPath, ['--input-type=module', '-e', POST], {
      input: JSON.stringify({
        url: options.doneUrl(run.job.id),
        key: options.apiKey,
        body: options.body(error),
      }),
      stdio: ['pipe', 'ignore', 'ignore'],
      timeout: REPORT_MS,
    });
  };
  process.on('exit', onExit);
  return () => void process.off('exit', onExit);
}

/** Tries again while the server cannot be reached or fails. */
const POST = `
import { readFileSync } from 'node:fs';
const { url, key, body } = JSON.parse(readFileSync(0, 'utf8'));
const headers = { authorization: key, 'content-type': 'application/x-www-form-urlencoded' };
for (;;) {
  const signal = AbortSignal.timeout(5000);
  const response = await fetch(url, { method: 'POST', headers, body, signal }).catch(() => undefined);
  if (response !== undefined && response.status < 500) break;
  await new Promise((resolve) => setTimeout(resolve, 300));
}
`;
