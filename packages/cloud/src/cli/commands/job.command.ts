import { connect } from '../connect.ts';
import { programName } from '../cli-context.ts';
import { command } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';
import { escapeControlCharacters } from '../output.ts';
import type { Column } from '../output.ts';
import { parseCount } from '../serverless/deploy-options.ts';
import { endpointArgumentHelp, endpointPath, findEndpoint, jobPath } from '../serverless/endpoint-client.ts';
import { assertJobSucceeded, isUnfinished } from '../serverless/job-client.ts';
import type { JobView } from '../serverless/job-client.ts';
import { filterFields, filterOptions, searchJobs } from '../serverless/job-search.ts';
import type { JobEntry } from '../serverless/job-search.ts';
import { writeLine } from '../terminal-text.ts';
import { WatchedJob } from '../serverless/watched-job.ts';
import { repeatWhileWatched, watchOption } from '../watch.ts';

const milliseconds = (value: number | null): string =>
  value === null ? '-' : `${(value / 1000).toFixed(1)} s`;
const columns: Column<JobEntry>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'STATUS', value: ({ status }) => status },
  { title: 'CREATED', value: ({ createdAt }) => createdAt },
  // Before the others, which a narrow terminal leaves out.
  { title: 'ERROR OR INPUT', value: ({ error, inputPreview }) => error ?? inputPreview },
  { title: 'WAITED', value: ({ delayTime }) => milliseconds(delayTime) },
  { title: 'RAN', value: ({ executionTime }) => milliseconds(executionTime) },
];

const DEFAULT_LIMIT = 50;

export const jobLs = command({
  name: 'job ls',
  summary: 'List the jobs of an endpoint, newest first.',
  words: { ENDPOINT: endpointArgumentHelp },
  options: {
    ...filterOptions,
    limit: { kind: 'text', value: 'N', description: `How many at most. Default: ${DEFAULT_LIMIT}.` },
    ...watchOption,
    ...serverOptions,
  },
  async run(call) {
    const limit = parseCount('limit', call.options.limit, 1) ?? DEFAULT_LIMIT;
    const fields = filterFields(call.options);
    const client = await connect(call);
    const endpoint = await findEndpoint(client, call.words.ENDPOINT);
    await repeatWhileWatched(call, async () => {
      const jobs = await searchJobs(client, endpoint, fields, limit);
      call.output.printTable({ jobs }, jobs, columns, `${endpoint.name} has no such job.`);
    });
  },
});

export const jobGet = command({
  name: 'job get',
  summary: 'Show a job with its input, output and error.',
  words: { ENDPOINT: endpointArgumentHelp, JOB: 'The id of the job.' },
  options: serverOptions,
  async run(call) {
    const client = await connect(call);
    const endpoint = await findEndpoint(client, call.words.ENDPOINT);
    const job = await client.get<Record<string, unknown>>(
      endpointPath(endpoint, `/jobs/${encodeURIComponent(call.words.JOB)}`),
    );
    const asText = (value: unknown): string | null => (value === null ? null : JSON.stringify(value));
    call.output.printRecord(
      call.output.isText
        ? {
            ...job,
            input: asText(job['input']),
            output: asText(job['output']),
            errorDetail: asText(job['errorDetail']),
          }
        : job,
    );
  },
});

interface ErrorGroup {
  fingerprint: string;
  type: string | null;
  message: string;
  count: number;
  firstSeen: string;
  lastSeen: string;
}

const errorColumns: Column<ErrorGroup>[] = [
  { title: 'FINGERPRINT', value: ({ fingerprint }) => fingerprint },
  { title: 'COUNT', value: ({ count }) => count },
  { title: 'FIRST SEEN', value: ({ firstSeen }) => firstSeen },
  { title: 'LAST SEEN', value: ({ lastSeen }) => lastSeen },
  { title: 'ERROR', value: ({ type, message }) => (type === null ? message : `${type}: ${message}`) },
];

export const jobErrors = command({
  name: 'job errors',
  summary: 'Group the failed jobs of an endpoint by their error.',
  details:
    'Errors that differ only in ids, numbers and paths are one group. "berth job redrive ENDPOINT ' +
    '--fingerprint ID" sends the jobs of a group again.',
  words: { ENDPOINT: endpointArgumentHelp },
  options: { ...watchOption, ...serverOptions },
  async run(call) {
    const client = await connect(call);
    const endpoint = await findEndpoint(client, call.words.ENDPOINT);
    await repeatWhileWatched(call, async () => {
      const answer = await client.get<{ groups: ErrorGroup[] }>(endpointPath(endpoint, '/errors'));
      call.output.printTable(answer, answer.groups, errorColumns, `${endpoint.name} has no failed job.`);
    });
  },
});

export const jobWatch = command({
  name: 'job watch',
  summary: 'Show how a job goes on, until it ends.',
  words: { ENDPOINT: endpointArgumentHelp, JOB: 'The id of the job.' },
  options: serverOptions,
  async run(call) {
    const client = await connect(call);
    const endpoint = await findEndpoint(client, call.words.ENDPOINT);
    const job = await client.get<JobView>(jobPath(endpoint, `status/${encodeURIComponent(call.words.JOB)}`));
    const watched = new WatchedJob(client, endpoint, job, {
      report: (line) => writeLine(call.stderr, escapeControlCharacters(line)),
      withinMs: Infinity,
      interrupt: call.onInterrupt?.(),
      cancelsOnInterrupt: false,
      program: programName(call.env),
    });
    const ended = isUnfinished(job) ? await watched.end() : job;
    const { error: _, ...shown } = ended;
    call.output.printRecord(
      call.output.isText ? { ...shown, output: JSON.stringify(ended.output) } : { ...ended },
    );
    assertJobSucceeded(ended);
  },
});
