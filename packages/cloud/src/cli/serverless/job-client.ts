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
const QUEUED_POLL_INTERVAL_MS = 2000;
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
  /** Ends the wait; the job continues. */
  signal?: AbortSignal | undefined;
  /**
   * Called at once with the job, and then whenever its status, its worker or the reason why it waits changes.
   */
  onChange?(job: JobView): void;
}

/** Waits for the end of a job. Resolves with the job as it is when the time is over. */
export async function waitForJob(
  client: ApiClient,
  endpoint: Target,
  submitted: JobView,
  { withinMs = Infinity, signal, onChange }: WaitOptions = {},
): Promise<JobView> {
  const until = performance.now() + withinMs;
  let found = submitted;
  let shown: string | undefined;
  for (;;) {
    const state = JSON.stringify([found.status, found.reason, found.workerId]);
    if (state !== shown) onChange?.(found);
    const isFirst = shown === undefined;
    shown = state;
    if (!isUnfinished(found) || performance.now() >= until || isAborted(signal)) return found;
    // The first answer comes soon: it says what the job waits for.
    const longest = isFirst
      ? MIN_WAIT_MS
      : found.status === 'IN_QUEUE'
        ? QUEUED_POLL_INTERVAL_MS
        : MAX_WAIT_MS;
    const wait = Math.round(Math.min(longest, Math.max(MIN_WAIT_MS, until - performance.now())));
    try {
      found = await client.get<JobView>(jobPath(endpoint, `status-sync/${found.id}?wait=${wait}`), {
        timeoutMs: wait + RESPONSE_GRACE_MS,
        ...(signal !== undefined && { signal }),
      });
    } catch (error) {
      if (!isAborted(signal)) throw error;
    }
  }
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

/** Submits a job and waits for its end. */
export async function runJobToEnd(
  client: ApiClient,
  endpoint: Target,
  job: RawJson,
  options: WaitOptions = {},
): Promise<JobView> {
  return waitForJob(client, endpoint, await submitJob(client, endpoint, job), options);
}

export function cancelJob(client: ApiClient, endpoint: Target, id: string): Promise<JobView> {
  return client.post<JobView>(jobPath(endpoint, `cancel/${encodeURIComponent(id)}`), {});
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

/** Handlers of the Python SDK report an error as JSON in a string, with a traceback. */
function errorText(error: unknown): string {
  const text = typeof error === 'string' ? error : JSON.stringify(error);
  try {
    const { error_message, error_traceback } = JSON.parse(text) as Record<string, unknown>;
    if (typeof error_message !== 'string') return text.trimEnd();
    return typeof error_traceback === 'string'
      ? `${error_message}\n${error_traceback.trimEnd()}`
      : error_message;
  } catch {
    return text.trimEnd();
  }
}
