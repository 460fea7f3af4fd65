import { connect } from '../api-client.ts';
import { command } from '../command-definition.ts';
import { UsageError } from '../cli.errors.ts';
import { serverOptions } from '../local-server.ts';
import type { Output } from '../output.ts';
import { escapeControlCharacters } from '../output.ts';
import { endpointArgumentHelp, findEndpointForJobs, jobPath } from '../serverless/endpoint-client.ts';
import { readJobInput } from '../serverless/job-input.ts';
import {
  assertJobSucceeded,
  streamJobOutput,
  isUnfinished,
  runJobToEnd,
  submitJob,
} from '../serverless/job-client.ts';
import type { JobView } from '../serverless/job-client.ts';
import { parseCount } from '../serverless/deploy-options.ts';
import { progressReporter } from '../serverless/image-upload.ts';
import { formatStartPhases } from '../serverless/start-phases.ts';

export const run = command({
  name: 'run',
  summary: 'Send a job to an endpoint.',
  details:
    'The job is queued and its id shown, unless --sync or --stream wait for what comes of it. With those, a job that fails makes the command fail.',
  words: {
    ENDPOINT: endpointArgumentHelp,
    JSON: `The job: '{"input": …}', or the input alone; @FILE reads it from a file, - from the standard input.`,
  },
  options: {
    sync: { kind: 'switch', description: 'Wait for the job to end, and show its result.' },
    stream: { kind: 'switch', description: 'Show what the handler yields, as it comes.' },
    wait: {
      kind: 'text',
      value: 'MS',
      description:
        'With --sync: how many milliseconds to wait at most; then the job is shown as it stands and goes on. Default: until it ends.',
    },
    ...serverOptions,
  },
  async run(call) {
    const { words, options, output, stderr } = call;
    if (options.sync && options.stream) throw new UsageError('--sync and --stream exclude each other');
    const wait = parseCount('wait', options.wait, 1);
    if (wait !== undefined && !options.sync) throw new UsageError('--wait goes with --sync');
    const job = await readJobInput(words.JSON, call.stdin);
    const client = await connect(call);
    const endpoint = await findEndpointForJobs(client, words.ENDPOINT);
    const say = progressReporter(stderr, output.isInteractive);
    if (options.sync)
      return showResult(
        output,
        await runJobToEnd(client, endpoint, job, {
          withinMs: wait,
          onWaiting: (reason) => say(`the job waits: ${reason}`),
        }),
        endpoint.name,
      );
    const { id, status } = await submitJob(client, endpoint, job);
    if (!options.stream)
      return output.printRecord(
        { id, status },
        `It runs on its own. Its log: berth logs ${endpoint.name} --job ${id} -f`,
      );
    for await (const chunk of streamJobOutput(client, endpoint, id, new AbortController().signal))
      showChunk(output, chunk);
    const ended = await client.get<JobView>(jobPath(endpoint, `status/${id}`));
    if (!output.isInteractive) output.printText(`${JSON.stringify(ended)}\n`);
    assertJobSucceeded(ended);
  },
});

function showResult(output: Output, job: JobView, endpoint: string): void {
  const notes = isUnfinished(job)
    ? [
        `It goes on${job.reason === undefined ? '' : ` (${job.reason})`}. Its log: berth logs ${endpoint} --job ${job.id} -f`,
      ]
    : [];
  output.printRecord(
    output.isInteractive
      ? {
          ...job,
          ...asJson(job, 'input'),
          ...asJson(job, 'output'),
          ...(job.phases !== undefined && { phases: formatStartPhases(job.phases) }),
        }
      : { ...job },
    ...notes,
  );
  assertJobSucceeded(job);
}

/** Input and output of a handler are printed as JSON. */
function asJson(job: JobView, field: 'input' | 'output'): Record<string, string> {
  return job[field] === undefined ? {} : { [field]: JSON.stringify(job[field]) };
}

/** One chunk is one line: text as it is, anything else as JSON. */
function showChunk(output: Output, chunk: { output: unknown }): void {
  if (!output.isInteractive) return output.printText(`${JSON.stringify(chunk)}\n`);
  output.printText(
    `${typeof chunk.output === 'string' ? chunk.output.split('\n').map(escapeControlCharacters).join('\n') : JSON.stringify(chunk.output)}\n`,
  );
}
