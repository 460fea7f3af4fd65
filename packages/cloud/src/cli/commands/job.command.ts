import { JOB_STATUSES } from '../../domain/job-records.ts';
import { ACTION_STATUSES } from '../../domain/job-search-query.ts';
import type { JobAction } from '../../domain/job-search-query.ts';
import { connect } from '../connect.ts';
import type { ApiClient } from '../api-client.ts';
import { UsageError } from '../cli.errors.ts';
import { command } from '../command-definition.ts';
import type { Command, Options } from '../command-definition.ts';
import { serverOptions } from '../local-server.ts';
import { escapeControlCharacters } from '../output.ts';
import type { Column } from '../output.ts';
import { parseCount } from '../serverless/deploy-options.ts';
import { endpointArgumentHelp, endpointPath, findEndpoint, jobPath } from '../serverless/endpoint-client.ts';
import type { EndpointView } from '../serverless/endpoint-client.ts';
import { assertJobSucceeded, isUnfinished } from '../serverless/job-client.ts';
import type { JobView } from '../serverless/job-client.ts';
import { readJobInput } from '../serverless/job-input.ts';
import { WatchedJob } from '../serverless/watched-job.ts';
import { repeatWhileWatched, watchOption } from '../watch.ts';

interface JobEntry {
  id: string;
  status: string;
  createdAt: string;
  delayTime: number | null;
  executionTime: number | null;
  error: string | null;
  inputPreview: string | null;
}
interface JobPage {
  jobs: JobEntry[];
  pagination: { nextCursor: string | null };
}
interface BulkResult {
  done: number;
  jobs: { id: string; newId?: string }[];
  skipped: { id: string; reason: string }[];
  nextCursor: string | null;
}

/** Which jobs are meant; the same for the list and for actions. */
const filterOptions = {
  status: { kind: 'list', choices: JOB_STATUSES, description: 'Only jobs in this state. May be repeated.' },
  from: { kind: 'text', value: 'TIME', description: 'Only jobs created at or after this time (ISO 8601).' },
  to: { kind: 'text', value: 'TIME', description: 'Only jobs created before this time.' },
  text: { kind: 'text', value: 'TEXT', description: 'Only jobs whose request contains this text.' },
  fingerprint: {
    kind: 'text',
    value: 'ID',
    description: 'Only jobs with this error; "berth job errors" shows the fingerprints.',
  },
} as const satisfies Options;
type FilterValues = {
  status: string[];
  from: string | undefined;
  to: string | undefined;
  text: string | undefined;
  fingerprint: string | undefined;
};

function filterFields({ status, from, to, text, fingerprint }: FilterValues): Record<string, unknown> {
  const time = (value: string | undefined): string | undefined => {
    if (value === undefined) return undefined;
    if (Number.isNaN(Date.parse(value)))
      throw new UsageError(`${JSON.stringify(value)} is not a time such as 2026-01-31T12:00:00Z`);
    return new Date(value).toISOString();
  };
  const fields = { from: time(from), to: time(to), text, fingerprint };
  return {
    ...(status.length > 0 && { status }),
    ...Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)),
  };
}

const milliseconds = (value: number | null): string =>
  value === null ? '-' : `${(value / 1000).toFixed(1)} s`;
const columns: Column<JobEntry>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'STATUS', value: ({ status }) => status },
  { title: 'CREATED', value: ({ createdAt }) => createdAt.slice(0, 19).replace('T', ' ') },
  { title: 'WAITED', value: ({ delayTime }) => milliseconds(delayTime) },
  { title: 'RAN', value: ({ executionTime }) => milliseconds(executionTime) },
  { title: 'ERROR OR INPUT', value: ({ error, inputPreview }) => error ?? inputPreview },
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

/** A search answers in pages; a page may be short, or empty, while there are more. */
async function searchJobs(
  client: ApiClient,
  endpoint: EndpointView,
  { status, ...fields }: Record<string, unknown>,
  limit: number,
): Promise<JobEntry[]> {
  const found: JobEntry[] = [];
  let cursor: string | null = null;
  do {
    const query = new URLSearchParams(fields as Record<string, string>);
    if (Array.isArray(status)) query.set('status', status.join(','));
    query.set('limit', String(Math.min(1000, limit - found.length)));
    if (cursor !== null) query.set('cursor', cursor);
    const page: JobPage = await client.get<JobPage>(endpointPath(endpoint, `/jobs?${query.toString()}`));
    found.push(...page.jobs);
    cursor = page.pagination.nextCursor;
  } while (cursor !== null && found.length < limit);
  return found;
}

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
  { title: 'FIRST SEEN', value: ({ firstSeen }) => firstSeen.slice(0, 19).replace('T', ' ') },
  { title: 'LAST SEEN', value: ({ lastSeen }) => lastSeen.slice(0, 19).replace('T', ' ') },
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

const ACTION_HELP: Record<JobAction, { summary: string; done: string }> = {
  retry: { summary: 'Put failed jobs back into the queue.', done: 'retried' },
  cancel: { summary: 'Cancel jobs.', done: 'cancelled' },
  redrive: { summary: 'Send jobs that have ended again, as new jobs.', done: 'sent again' },
};

function actionCommand(action: JobAction): Command {
  const inputOption = {
    input: {
      kind: 'text',
      value: 'JSON',
      description: 'With one job: another input. @FILE and - work as with run.',
    },
  } as const satisfies Options;
  return command({
    name: `job ${action}`,
    summary: ACTION_HELP[action].summary,
    details:
      'Name jobs by their ids, or by a filter; --all means all that are ' +
      `${ACTION_STATUSES[action].join(' or ')}.`,
    words: { ENDPOINT: endpointArgumentHelp, 'JOB?': 'The id of a job; several with commas.' },
    options: {
      ...filterOptions,
      all: { kind: 'switch', description: `All jobs that are ${ACTION_STATUSES[action].join(' or ')}.` },
      ...(action === 'redrive' ? inputOption : {}),
      ...serverOptions,
    },
    async run(call) {
      const filter = filterFields(call.options);
      const ids = call.words.JOB?.split(',');
      if ([ids !== undefined, Object.keys(filter).length > 0, call.options.all].filter(Boolean).length !== 1)
        throw new UsageError('name jobs by their ids, by a filter such as --status, or by --all');
      const given = (call.options as { input?: string }).input;
      const client = await connect(call);
      const endpoint = await findEndpoint(client, call.words.ENDPOINT);
      const target = ids === undefined ? { filter } : { ids };
      const input =
        given === undefined ? {} : (JSON.parse((await readJobInput(given, call.stdin)).text) as object);
      const result = await actOnAll(client, endpointPath(endpoint, `/jobs/${action}`), {
        ...target,
        ...input,
      });
      for (const { id, reason } of result.skipped)
        call.stderr.write(`berth: ${id} is skipped: ${escapeControlCharacters(reason)}\n`);
      call.output.printRecord(
        call.output.isText
          ? { [ACTION_HELP[action].done]: result.done, skipped: result.skipped.length }
          : { done: result.done, jobs: result.jobs, skipped: result.skipped },
        ...result.jobs.flatMap(({ newId }) => (newId === undefined ? [] : [newId])),
      );
    },
  });
}

/** One call changes a bounded number of jobs. */
async function actOnAll(client: ApiClient, path: string, body: object): Promise<BulkResult> {
  const all: BulkResult = { done: 0, jobs: [], skipped: [], nextCursor: null };
  do {
    const next: BulkResult = await client.post<BulkResult>(path, {
      ...body,
      ...(all.nextCursor !== null && { cursor: all.nextCursor }),
    });
    all.done += next.done;
    all.jobs.push(...next.jobs);
    all.skipped.push(...next.skipped);
    all.nextCursor = next.nextCursor;
  } while (all.nextCursor !== null);
  return all;
}

export const jobRetry = actionCommand('retry');
export const jobCancel = actionCommand('cancel');
export const jobRedrive = actionCommand('redrive');

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
      report: (line) => void call.stderr.write(`${escapeControlCharacters(line)}\n`),
      withinMs: Infinity,
      interrupt: call.onInterrupt?.(),
      cancelsOnInterrupt: false,
    });
    const ended = isUnfinished(job) ? await watched.end() : job;
    const { error: _, ...shown } = ended;
    call.output.printRecord(
      call.output.isText ? { ...shown, output: JSON.stringify(ended.output) } : { ...ended },
    );
    assertJobSucceeded(ended);
  },
});
