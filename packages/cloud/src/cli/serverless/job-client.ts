import type { ApiClient, RawJson } from '../api-client.ts';
import { CliError } from '../cli.errors.ts';
import { jobPath } from './endpoint-client.ts';
import type { EndpointView } from './endpoint-client.ts';
import type { StartPhasesView } from './start-phases.ts';

type Target = Pick<EndpointView, 'id'>;

export interface JobView {
  id: string;
  status: string;
  input?: unknown;
  output?: unknown;
  error?: unknown;
  reason?: string;
  workerId?: string;
  /** The start of its worker, if the job waited for that. */
  phases?: StartPhasesView;
}

const UNFINISHED_STATUSES = new Set(['IN_QUEUE', 'IN_PROGRESS']);
/** The longest wait of one request; proxies may cut off longer ones. */
const MAX_WAIT_MS = 60_000;
const MIN_WAIT_MS = 1000;
/** How often to check why a job still waits for a worker. */
const QUEUED_POLL_INTERVAL_MS = 5000;
/** Extra time for a response after the requested wait. */
const RESPONSE_GRACE_MS = 15_000;

export function submitJob(client: ApiClient, endpoint: Target, job: RawJson): Promise<JobView> {
  return client.post<JobView>(jobPath(endpoint, 'run'), job);
}

export function isUnfinished({ status }: JobView): boolean {
  return UNFINISHED_STATUSES.has(status);
}

export interface WaitOptions {
  /** The maximum wait. */
  withinMs?: number | undefined;
  /** Called with the reason why the job still waits, when the reason changes. */
  onWaiting?(reason: string): void;
}

/** Submits a job and waits for its end. */
export async function runJobToEnd(
  client: ApiClient,
  endpoint: Target,
  job: RawJson,
  { withinMs = Infinity, onWaiting }: WaitOptions = {},
): Promise<JobView> {
  const until = performance.now() + withinMs;
  const stretch = (longest: number): number =>
    Math.round(Math.min(longest, Math.max(MIN_WAIT_MS, until - performance.now())));
  const first = stretch(QUEUED_POLL_INTERVAL_MS);
  let found = await client.post<JobView>(jobPath(endpoint, `runsync?wait=${first}`), job, {
    timeoutMs: first + RESPONSE_GRACE_MS,
  });
  let told: string | undefined;
  while (isUnfinished(found) && performance.now() < until) {
    if (found.reason !== undefined && found.reason !== told) onWaiting?.((told = found.reason));
    const wait = stretch(found.status === 'IN_QUEUE' ? QUEUED_POLL_INTERVAL_MS : MAX_WAIT_MS);
    found = await client.get<JobView>(jobPath(endpoint, `status-sync/${found.id}?wait=${wait}`), {
      timeoutMs: wait + RESPONSE_GRACE_MS,
    });
  }
  return found;
}

/** Streams the output of a job. */
export async function* streamJobOutput(
  client: ApiClient,
  endpoint: Target,
  id: string,
  signal: AbortSignal,
): AsyncGenerator<{ output: unknown }> {
  for await (const { data } of client.events(jobPath(endpoint, `stream/${id}`), signal))
    yield JSON.parse(data) as { output: unknown };
}

/** A job that ended without a result makes the command fail. */
export function assertJobSucceeded(job: JobView): void {
  if (isUnfinished(job) || job.status === 'COMPLETED') return;
  throw new CliError(
    `job ${job.id} is ${job.status}${job.error === undefined ? '' : `: ${errorText(job.error)}`}`,
  );
}

/** Handlers of the Python SDK report an error as JSON in a string. */
function errorText(error: unknown): string {
  if (typeof error !== 'string') return JSON.stringify(error);
  try {
    const told = JSON.parse(error) as { error_message?: unknown } | null;
    return typeof told?.error_message === 'string' ? told.error_message : error;
  } catch {
    return error;
  }
}
