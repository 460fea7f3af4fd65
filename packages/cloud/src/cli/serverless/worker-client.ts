import type { ApiClient } from '../api-client.ts';
import { CliError } from '../cli.errors.ts';
import type { Pause } from '../interruptible-pause.ts';
import { escapeControlCharacters, shortenReason } from '../output.ts';
import { reportChanges } from '../report-changes.ts';
import { endpointPath } from './endpoint-client.ts';
import type { EndpointView } from './endpoint-client.ts';
import { ignoreNotFound, readLog } from './log-client.ts';
import type { StartPhasesView } from './start-phases.ts';

export interface WorkerView {
  id: string;
  status: 'RUNNING' | 'IDLE' | 'INITIALIZING' | 'THROTTLED' | 'UNHEALTHY';
  isStale: boolean;
  gpuCount?: number;
  gpuTypeId?: string | null;
  gpuVirtual?: boolean;
  startedAt?: string | null;
  /** Missing from servers of earlier versions. */
  phases?: StartPhasesView;
  reason?: string | null;
}

export interface WorkerSummary {
  running: number;
  idle: number;
  initializing: number;
  throttled: number;
  unhealthy: number;
  total: number;
}

export interface WorkerList {
  workers: WorkerView[];
  summary: WorkerSummary;
  /** Why no worker can take a job, if the server gives a reason. */
  reason?: string | null;
  /** Workers in a row that crashed or could not be started; earlier servers do not say. */
  failedStarts?: number;
}

const POLL_INTERVAL_MS = 250;
const FAILURE_LOG_LINES = 20;
const ENOUGH_FAILED_STARTS = 3;

export function listWorkers(client: ApiClient, endpoint: Pick<EndpointView, 'id'>): Promise<WorkerList> {
  return client.get<WorkerList>(endpointPath(endpoint, '/workers'));
}

/**
 * Waits for a worker of the current release. Returns the reason if none is expected; throws if one is
 * expected and does not become ready. `onChange` gets each step of the start, and slow ones again.
 */
export async function waitForWorker(
  client: ApiClient,
  endpoint: EndpointView,
  withinMs: number,
  pause: Pause,
  onChange: (state: string) => void,
): Promise<{ ready: boolean; reason?: string }> {
  if (endpoint.workers.min === 0)
    return { ready: false, reason: 'no worker is kept ready (--min is 0); the first request starts one' };
  const until = performance.now() + withinMs;
  let lastSeen: WorkerView | undefined;
  let failedBefore: number | undefined;
  const report = reportChanges(onChange);
  for (;;) {
    const found = await listWorkers(client, endpoint);
    const current = found.workers.filter(({ isStale }) => !isStale);
    if (current.some(({ status }) => status === 'RUNNING' || status === 'IDLE')) return { ready: true };
    const state = current[0]?.reason ?? found.reason ?? formatWorkerSummary(found.summary);
    report(shortenReason(state));
    const ill = current.find(({ status }) => status === 'UNHEALTHY');
    lastSeen = ill ?? current[0] ?? lastSeen;
    const failed = found.failedStarts ?? 0;
    failedBefore ??= failed;
    // The next ones fail too. What was counted before this release was made does not count.
    const endsAtStart = failed >= ENOUGH_FAILED_STARTS && failed !== failedBefore;
    if (ill !== undefined || endsAtStart || performance.now() >= until)
      throw await notReady(client, endpoint, found, lastSeen, { endsAtStart, withinMs });
    await pause(POLL_INTERVAL_MS);
  }
}

/** The log of the last worker that tried to start. It can be read after the worker has ended. */
async function notReady(
  client: ApiClient,
  endpoint: EndpointView,
  found: WorkerList,
  worker: WorkerView | undefined,
  { endsAtStart, withinMs }: { endsAtStart: boolean; withinMs: number },
): Promise<CliError> {
  const stands =
    found.summary.total > 0
      ? formatWorkerSummary(found.summary)
      : worker === undefined
        ? 'none was started'
        : 'what was started has ended';
  const when =
    worker?.status === 'UNHEALTHY'
      ? 'a worker is unhealthy'
      : `no worker is ready${endsAtStart ? '' : ` after ${withinMs / 1000} s`}`;
  const lines =
    worker === undefined
      ? []
      : await readLog(
          client,
          endpointPath(endpoint, `/workers/${worker.id}/logs?tail=${FAILURE_LOG_LINES}&follow=false`),
        ).catch(ignoreNotFound([]));
  const log =
    lines.length === 0
      ? ''
      : `\nthe log of worker ${worker?.id} ends ` +
        `with:\n${lines.map(({ line }) => `  ${escapeControlCharacters(line)}`).join('\n')}`;
  return new CliError(
    `endpoint ${endpoint.name} (${endpoint.id}) is deployed, but ${when}: ${found.reason ?? stands}${log}`,
  );
}

/** `2 running, 1 idle` */
export function formatWorkerSummary({ total: _, ...counts }: WorkerSummary): string {
  return (
    Object.entries(counts)
      .filter(([, count]) => count > 0)
      .map(([status, count]) => `${count} ${status}`)
      .join(', ') || 'none'
  );
}
