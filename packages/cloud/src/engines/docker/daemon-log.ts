import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { FrameParser } from './stream-frames.ts';
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
  client: Docker,
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

interface DialRequest {
  path: string;
  method: 'GET';
  isStream: true;
  options: Record<string, unknown>;
  statusCodes: Record<number, true | string>;
  abortSignal: AbortSignal;
}

/** Uses modem.dial, because the library's call reads the whole log into memory without `follow`. */
export function openDaemonLog(
  client: Docker,
  { container, since = 0, tail, follow = false, signal }: DaemonLogQuery,
): Promise<Readable> {
  const modem = client.modem as {
    dial(request: DialRequest, callback: (error: Error | null, stream: Readable) => void): void;
  };
  const options = {
    follow,
    since,
    stdout: true,
    stderr: true,
    timestamps: true,
    ...(tail !== undefined && { tail }),
  };
  const statusCodes = { 200: true as const, 404: 'no such container', 500: 'server error' };
  return new Promise((resolve, reject) => {
    modem.dial(
      {
        path: `/containers/${container}/logs?`,
        method: 'GET',
        isStream: true,
        options,
        statusCodes,
        abortSignal: signal,
      },
      (error, stream) => (error === null ? resolve(stream) : reject(error)),
    );
  });
}
