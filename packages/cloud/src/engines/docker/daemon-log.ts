import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { FrameParser } from './stream-frames.ts';
import { type DaemonLine, LineAssembler } from './daemon-log-lines.ts';

export interface DaemonLogQuery {
  container: string;
  signal: AbortSignal;
  /** In seconds since 1970, whole ones: not every daemon counts parts of them exactly. */
  since?: number;
  /** So many of the last lines alone. */
  tail?: number;
  /** Goes on until the container ends. */
  follow?: boolean;
  /** Nothing more will come: what has no line end is a line too. */
  last?: boolean;
}

/** What the daemon kept of a container's output, a few lines at a time. */
export async function* readDaemonLog(
  client: Docker,
  reading: DaemonLogQuery,
): AsyncGenerator<DaemonLine[], void, undefined> {
  const stream = await openDaemonLog(client, reading);
  const frames = new FrameParser();
  const assembler = new LineAssembler();
  let newest = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    const lines = assembler.push(frames.push(chunk));
    newest = lines.at(-1)?.ts ?? newest;
    if (lines.length > 0) yield lines;
  }
  const rest = reading.last === true ? assembler.rest(newest) : [];
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

/** The library's own call would bring everything into memory at once where nobody follows. */
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
