import { existsSync, readFileSync } from 'node:fs';
import { readIdentity } from './worker-environment.ts';
import { errorMessage } from './error-report.ts';
import type { Handler, Job } from './handler.ts';
import type { Options } from './worker-options.ts';
import { JobRun } from './job-run.ts';
import { HandlerRunner } from './handler-runner.ts';

const INPUT_FILE = 'test_input.json';

/** The job given on the command line or in the file in this folder. */
function readJob(testInput: string | undefined): Job {
  if (testInput === undefined && !existsSync(INPUT_FILE)) {
    throw new Error(
      'there is no platform to take jobs from (RUNPOD_WEBHOOK_GET_JOB is not set), and nothing to try: ' +
        `give --test_input '{"input": …}' or write ${INPUT_FILE}`,
    );
  }
  const source = testInput === undefined ? INPUT_FILE : '--test_input';
  let job: unknown;
  try {
    job = JSON.parse(testInput ?? readFileSync(INPUT_FILE, 'utf8'));
  } catch (error) {
    throw new Error(`${source} is not JSON`, { cause: error });
  }
  if (typeof job !== 'object' || job === null || !('input' in job))
    throw new Error(`${source} has no "input": it has to be {"input": …}`);
  return { id: 'local_test', ...job };
}

/** The value of `--test_input`, in either of its two forms. */
export function parseTestInput(argv: readonly string[]): string | undefined {
  const index = argv.findIndex((word) => word === '--test_input' || word.startsWith('--test_input='));
  const word = argv[index];
  if (word === undefined) return undefined;
  return word === '--test_input' ? argv[index + 1] : word.slice('--test_input='.length);
}

/**
 * Runs the handler once and prints the result that would be sent. The output of a stream is everything that
 * it yielded. Rejects where the job failed.
 */
export async function runLocally(
  handler: Handler,
  { env, refreshWorker = false }: Options,
  testInput: string | undefined,
  interrupted: AbortSignal,
): Promise<void> {
  let failed = false;
  const print = (text: string): undefined => void process.stdout.write(`${text}\n`);
  try {
    const run = new JobRun({
      job: readJob(testInput),
      progress: (value) => print(`progress ${value}`),
      chunk: (body) => print(`chunk ${body}`),
      finish: (body) => print(`result ${body}`),
      abandon: () => undefined,
    });
    interrupted.addEventListener('abort', () => run.abort('the run was interrupted'), { once: true });
    const runner = new HandlerRunner(
      handler,
      { aggregate: true, refreshWorker, identity: readIdentity(env ?? process.env) },
      (_run, result) => (failed = result.failed),
    );
    await runner.run(run);
    if (failed || run.stopped) throw new Error(run.stopped ? 'the run was interrupted' : 'the job failed');
  } catch (error) {
    process.stderr.write(`${errorMessage(error)}\n`);
    throw error;
  }
}
