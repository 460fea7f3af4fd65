import type { Client, JsonText } from '../client.ts';
import { Failure } from '../failure.ts';
import { jobPath } from './endpoints.ts';
import type { EndpointView } from './endpoints.ts';

type Target = Pick<EndpointView, 'id'>;

export interface JobView {
  id: string;
  status: string;
  input?: unknown;
  output?: unknown;
  error?: unknown;
  reason?: string;
  workerId?: string;
}

const UNDER_WAY = new Set(['IN_QUEUE', 'IN_PROGRESS']);
/** Each request waits this long at most; a longer one might be cut off on its way. */
const STRETCH_MS = 60_000;
const SHORTEST_WAIT_MS = 1000;
/** As long as a job waits for a worker, one looks this often why. */
const LOOK_WHY_MS = 5000;
/** What a request may take beyond the time that it was asked to wait. */
const GRACE_MS = 15_000;

export function submit(client: Client, endpoint: Target, job: JsonText): Promise<JobView> {
  return client.post<JobView>(jobPath(endpoint, 'run'), job);
}

export function isUnderWay({ status }: JobView): boolean {
  return UNDER_WAY.has(status);
}

export interface Patience {
  /** Waits so long at most. */
  withinMs?: number | undefined;
  /** Told why the job still waits for a worker, whenever that is something else. */
  onWaiting?(reason: string): void;
}

/** Submits a job and waits for its end. */
export async function runToEnd(
  client: Client,
  endpoint: Target,
  job: JsonText,
  { withinMs = Infinity, onWaiting }: Patience = {},
): Promise<JobView> {
  const until = performance.now() + withinMs;
  const stretch = (longest: number): number =>
    Math.round(Math.min(longest, Math.max(SHORTEST_WAIT_MS, until - performance.now())));
  const first = stretch(LOOK_WHY_MS);
  let found = await client.post<JobView>(jobPath(endpoint, `runsync?wait=${first}`), job, {
    within: first + GRACE_MS,
  });
  let told: string | undefined;
  while (isUnderWay(found) && performance.now() < until) {
    if (found.reason !== undefined && found.reason !== told) onWaiting?.((told = found.reason));
    const wait = stretch(found.status === 'IN_QUEUE' ? LOOK_WHY_MS : STRETCH_MS);
    found = await client.get<JobView>(jobPath(endpoint, `status-sync/${found.id}?wait=${wait}`), {
      within: wait + GRACE_MS,
    });
  }
  return found;
}

/** What a job produces, as it comes. */
export async function* follow(
  client: Client,
  endpoint: Target,
  id: string,
  signal: AbortSignal,
): AsyncGenerator<{ output: unknown }> {
  for await (const { data } of client.events(jobPath(endpoint, `stream/${id}`), signal))
    yield JSON.parse(data) as { output: unknown };
}

/** A job that has ended without a result is a failure of the command too. */
export function checkResult(job: JobView): void {
  if (isUnderWay(job) || job.status === 'COMPLETED') return;
  throw new Failure(
    `job ${job.id} is ${job.status}${job.error === undefined ? '' : `: ${errorText(job.error)}`}`,
  );
}

/** Handlers of the Python SDK tell an error as JSON in a string. */
function errorText(error: unknown): string {
  if (typeof error !== 'string') return JSON.stringify(error);
  try {
    const told = JSON.parse(error) as { error_message?: unknown } | null;
    return typeof told?.error_message === 'string' ? told.error_message : error;
  } catch {
    return error;
  }
}
