import { setTimeout as pause } from 'node:timers/promises';
import type { ApiClient } from '../api-client.ts';
import { endpointPath } from './endpoint-client.ts';
import type { EndpointView } from './endpoint-client.ts';
import { followLog, ignoreNotFound } from './log-client.ts';
import type { LogLineView } from './log-client.ts';
import { listWorkers } from './worker-client.ts';
import { LOG_TAIL } from '../../domain/limits.ts';
const POLL_INTERVAL_MS = 1000;

/**
 * Follows the logs of all workers of an endpoint, including those that start later, until the signal aborts.
 */
export async function followWorkerLogs(
  client: ApiClient,
  endpoint: Pick<EndpointView, 'id'>,
  tail: number,
  show: (line: LogLineView, worker: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const followed = new Map<string, Promise<void>>();
  const failed = new AbortController();
  const ended = AbortSignal.any([signal, failed.signal]);
  const followOne = async (worker: string, lines: number): Promise<void> => {
    for await (const line of followLog(
      client,
      endpointPath(endpoint, `/workers/${worker}/logs?tail=${lines}`),
      ended,
    ))
      show(line, worker);
  };
  let lines = tail;
  while (!ended.aborted) {
    const { workers } = await listWorkers(client, endpoint);
    for (const { id } of workers) {
      if (followed.has(id)) continue;
      const following = followOne(id, lines).catch(ignoreNotFound(undefined));
      following.catch(() => failed.abort());
      followed.set(id, following);
    }
    // For a worker that starts later, every line is new.
    lines = LOG_TAIL.maximum;
    await pause(POLL_INTERVAL_MS, undefined, { signal: ended }).catch(() => undefined);
  }
  await Promise.all(followed.values());
}
