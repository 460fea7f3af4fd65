import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '../client.ts';
import { Failure } from '../failure.ts';
import { visible } from '../output.ts';
import { endpointPath } from './endpoints.ts';
import type { EndpointView } from './endpoints.ts';
import { ifThere, readLog } from './logs.ts';

export interface WorkerView {
  id: string;
  status: 'RUNNING' | 'IDLE' | 'INITIALIZING' | 'THROTTLED' | 'UNHEALTHY';
  isStale: boolean;
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
  /** Why no worker can take a job, where the server says so. */
  reason?: string | null;
}

const LOOK_EVERY_MS = 250;
const LAST_LINES = 20;

export function listWorkers(client: Client, endpoint: Pick<EndpointView, 'id'>): Promise<WorkerList> {
  return client.get<WorkerList>(endpointPath(endpoint, '/workers'));
}

/** Waits for a worker of the present release. Answers why none is to be waited for; throws where one should be there and is not. */
export async function waitForWorker(
  client: Client,
  endpoint: EndpointView,
  withinMs: number,
): Promise<{ ready: boolean; reason?: string }> {
  if (endpoint.workers.min === 0)
    return { ready: false, reason: 'no worker is kept ready (--min is 0); the first request starts one' };
  const until = performance.now() + withinMs;
  let lastSeen: WorkerView | undefined;
  for (;;) {
    const found = await listWorkers(client, endpoint);
    const current = found.workers.filter(({ isStale }) => !isStale);
    if (current.some(({ status }) => status === 'RUNNING' || status === 'IDLE')) return { ready: true };
    const ill = current.find(({ status }) => status === 'UNHEALTHY');
    lastSeen = ill ?? current[0] ?? lastSeen;
    if (ill !== undefined || performance.now() >= until)
      throw await notReady(client, endpoint, found, lastSeen, withinMs);
    await pause(LOOK_EVERY_MS);
  }
}

/** The log of the last worker that tried says most; it can be read when the worker has ended, too. */
async function notReady(
  client: Client,
  endpoint: EndpointView,
  found: WorkerList,
  worker: WorkerView | undefined,
  withinMs: number,
): Promise<Failure> {
  const stands =
    found.summary.total > 0
      ? shownSummary(found.summary)
      : worker === undefined
        ? 'none was started'
        : 'what was started has ended';
  const when =
    worker?.status === 'UNHEALTHY'
      ? 'a worker is unhealthy'
      : `no worker is ready after ${withinMs / 1000} s`;
  const lines =
    worker === undefined
      ? []
      : await readLog(
          client,
          endpointPath(endpoint, `/workers/${worker.id}/logs?tail=${LAST_LINES}&follow=false`),
        ).catch(ifThere([]));
  const told =
    lines.length === 0
      ? ''
      : `\nthe log of worker ${worker?.id} ends with:\n${lines.map(({ line }) => `  ${visible(line)}`).join('\n')}`;
  return new Failure(
    `endpoint ${endpoint.name} (${endpoint.id}) is deployed, but ${when}: ${found.reason ?? stands}${told}`,
  );
}

/** `2 running, 1 idle` */
export function shownSummary({ total: _, ...counts }: WorkerSummary): string {
  return (
    Object.entries(counts)
      .filter(([, count]) => count > 0)
      .map(([status, count]) => `${count} ${status}`)
      .join(', ') || 'none'
  );
}
