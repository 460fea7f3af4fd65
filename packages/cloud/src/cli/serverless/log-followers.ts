import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '../client.ts';
import { endpointPath } from './endpoints.ts';
import type { EndpointView } from './endpoints.ts';
import { followLog, ifThere } from './logs.ts';
import type { LogLine } from './logs.ts';
import { listWorkers } from './workers.ts';

/** The most that a server tells of what was before. */
export const MOST_LINES = 5000;
const LOOK_EVERY_MS = 1000;

/** Follows the logs of all workers of an endpoint, also of those that start later, until the signal says that it is enough. */
export async function followWorkers(
  client: Client,
  endpoint: Pick<EndpointView, 'id'>,
  tail: number,
  show: (line: LogLine, worker: string) => void,
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
      const following = followOne(id, lines).catch(ifThere(undefined));
      following.catch(() => failed.abort());
      followed.set(id, following);
    }
    // Of a worker that comes later, everything is new.
    lines = MOST_LINES;
    await pause(LOOK_EVERY_MS, undefined, { signal: ended }).catch(() => undefined);
  }
  await Promise.all(followed.values());
}
