import type { Readable } from 'node:stream';
import type { DockerClient } from './client/docker-client.ts';
import { FrameParser } from './client/stream-frames.ts';
import type { SourceLine } from '../logs/source-line.ts';
import { LineAssembler } from './daemon-log-lines.ts';

export interface DaemonLogQuery {
  container: string;
  signal: AbortSignal;
  /** Whole seconds since 1970: not every daemon handles fractions exactly. */
  since?: number;
  /** Only this many of the last lines. */
  tail?: number;
  /** Continue until the container ends. */
  follow?: boolean;
  /** The container has ended: an unfinished line counts as a line. */
  last?: boolean;
}

/** The daemon's log of a container, a few lines at a time. */
export async function* readDaemonLog(
  client: DockerClient,
  query: DaemonLogQuery,
): AsyncGenerator<SourceLine[], void, undefined> {
  const stream = await openDaemonLog(client, query);
  const frames = new FrameParser();
  const assembler = new LineAssembler();
  let newest = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    const lines = assembler.push(frames.push(chunk));
    newest = lines.at(-1)?.ts ?? newest;
    if (lines.length > 0) yield lines;
  }
  const rest = query.last === true ? assembler.rest(newest) : [];
  if (rest.length > 0) yield rest;
}

export function openDaemonLog(
  client: DockerClient,
  { container, since = 0, tail, follow = false, signal }: DaemonLogQuery,
): Promise<Readable> {
  const query = { follow, since, stdout: true, stderr: true, timestamps: true, tail };
  return client.stream('GET', `/containers/${container}/logs`, { query, signal });
}
