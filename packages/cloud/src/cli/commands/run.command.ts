import { connect } from '../connect.ts';
import { programName } from '../cli-context.ts';
import { command } from '../command-definition.ts';
import { UsageError } from '../cli.errors.ts';
import { serverOptions } from '../local-server.ts';
import type { Output } from '../output.ts';
import { escapeControlCharacters, shortenReason } from '../output.ts';
import { endpointArgumentHelp, findEndpointForJobs } from '../serverless/endpoint-client.ts';
import { writeLine } from '../terminal-text.ts';
import { readJobInput } from '../serverless/job-input.ts';
import { assertJobSucceeded, isUnfinished, submitJob } from '../serverless/job-client.ts';
import type { JobView } from '../serverless/job-client.ts';
import { parseCount } from '../serverless/deploy-options.ts';
import { WatchedJob } from '../serverless/watched-job.ts';
import { formatStartPhases } from '../serverless/start-phases.ts';

const DEFAULT_TIMEOUT_S = 600;

export const run = command({
  name: 'run',
  summary: 'Send a job to an endpoint.',
  details:
    'The job is queued and its id is printed. With --sync or --stream, the command waits for the ' +
    'result and shows on the standard error what the job waits for and where it runs. Exit codes: 1 ' +
    'if the job fails, 124 if the time to wait is over (the job continues), 130 after Ctrl-C.',
  words: {
    ENDPOINT: endpointArgumentHelp,
    JSON: `The job: '{"input": …}', or the input alone; @FILE reads it from a file, - from the standard input.`,
  },
  options: {
    sync: { kind: 'switch', description: 'Wait for the job to end, and show its result.' },
    stream: { kind: 'switch', description: 'Show the chunks of the stream as they arrive.' },
    timeout: {
      kind: 'text',
      value: 'SECONDS',
      description: `With --sync and --stream: how long to wait; 0: until the job ends. Default: ${DEFAULT_TIMEOUT_S}.`,
    },
    wait: {
      kind: 'text',
      value: 'MS',
      description:
        'With --sync: how many milliseconds to wait at most; then the current state of the job is shown and ' +
        'goes on, and the command succeeds.',
    },
    'cancel-on-interrupt': {
      kind: 'switch',
      description: 'Ctrl-C cancels the job. Without this option the job continues.',
    },
    quiet: { kind: 'switch', short: 'q', description: 'Do not show the progress of the job while waiting.' },
    ...serverOptions,
  },
  async run(call) {
    const { words, options, output, stderr } = call;
    const program = programName(call.env);
    if (options.sync && options.stream) throw new UsageError('--sync and --stream exclude each other');
    const wait = parseCount('wait', options.wait, 1);
    if (wait !== undefined && !options.sync) throw new UsageError('--wait goes with --sync');
    const timeout = parseCount('timeout', options.timeout, 0) ?? DEFAULT_TIMEOUT_S;
    const body = await readJobInput(words.JSON, call.stdin);
    const client = await connect(call);
    const endpoint = await findEndpointForJobs(client, words.ENDPOINT);
    const job = await submitJob(client, endpoint, body);
    if (!options.sync && !options.stream)
      return output.printRecord(
        { id: job.id, status: job.status },
        'It runs on its own. Its log:',
        `  ${program} logs ${endpoint.name} --job ${job.id} -f`,
      );
    const watched = new WatchedJob(client, endpoint, job, {
      report: (line) => {
        if (!options.quiet) writeLine(stderr, escapeControlCharacters(line));
      },
      withinMs: wait ?? (timeout === 0 ? Infinity : timeout * 1000),
      interrupt: call.onInterrupt?.(),
      cancelsOnInterrupt: options['cancel-on-interrupt'],
      program,
    });
    if (options.stream) {
      for await (const chunk of watched.stream()) showChunk(output, chunk);
      const ended = await watched.end();
      if (!output.isText) output.printText(`${JSON.stringify(ended)}\n`);
      return assertJobSucceeded(ended);
    }
    const found = await watched.end();
    if (isUnfinished(found) && wait === undefined) throw watched.timeOut(found);
    showResult(output, found, endpoint.name, program);
  },
});

function showResult(output: Output, job: JobView, endpoint: string, program: string): void {
  const notes = isUnfinished(job)
    ? ['It goes on. Its log:', `  ${program} logs ${endpoint} --job ${job.id} -f`]
    : [];
  output.printRecord(
    output.isText
      ? {
          ...withoutError(job),
          ...(job.reason !== undefined && { reason: shortenReason(job.reason) }),
          ...asJson(job, 'input'),
          ...asJson(job, 'output'),
          ...(job.phases !== undefined && { phases: formatStartPhases(job.phases) }),
        }
      : { ...job },
    ...notes,
  );
  assertJobSucceeded(job);
}

/** The error is shown once, as text, when the command fails. */
function withoutError({ error: _, ...job }: JobView): Omit<JobView, 'error'> {
  return job;
}

/** Input and output of a handler are printed as JSON. */
function asJson(job: JobView, field: 'input' | 'output'): Record<string, string> {
  return job[field] === undefined ? {} : { [field]: JSON.stringify(job[field]) };
}

/** One chunk is one line: text as it is, anything else as JSON. */
function showChunk(output: Output, chunk: { output: unknown }): void {
  if (!output.isText) return output.printText(`${JSON.stringify(chunk)}\n`);
  const text =
    typeof chunk.output === 'string'
      ? chunk.output.split('\n').map(escapeControlCharacters).join('\n')
      : JSON.stringify(chunk.output);
  output.printText(`${text}\n`);
}
