import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { FrameParser } from './frames.ts';
import { type DaemonLine, LineAssembler } from './log-lines.ts';

export interface LogReading {
  container: string;
  /** In seconds since 1970, whole ones: not every daemon counts parts of them exactly. */
  since: number;
  /** Goes on until the container ends. */
  follow: boolean;
  /** Nothing more will come: what has no line end is a line too. */
  last: boolean;
  signal: AbortSignal;
}

/** What the daemon kept of a container's output, a few lines at a time. */
export async function* readDaemonLog(client: Docker, { container, since, follow, last, signal }: LogReading): AsyncGenerator<DaemonLine[], void, undefined> {
  const stream = await open(client, container, { follow, since, stdout: true, stderr: true, timestamps: true }, signal);
  const frames = new FrameParser();
  const assembler = new LineAssembler();
  let newest = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    const lines = assembler.push(frames.push(chunk));
    newest = lines.at(-1)?.ts ?? newest;
    if (lines.length > 0) yield lines;
  }
  const rest = last ? assembler.rest(newest) : [];
  if (rest.length > 0) yield rest;
}

interface Dial {
  path: string;
  method: 'GET';
  isStream: true;
  options: Record<string, unknown>;
  statusCodes: Record<number, true | string>;
  abortSignal: AbortSignal;
}

/** The library's own call would bring everything into memory at once where nobody follows. */
function open(client: Docker, container: string, options: Record<string, unknown>, abortSignal: AbortSignal): Promise<Readable> {
  const modem = client.modem as { dial(request: Dial, callback: (error: Error | null, stream: Readable) => void): void };
  const statusCodes = { 200: true as const, 404: 'no such container', 500: 'server error' };
  return new Promise((resolve, reject) => {
    modem.dial({ path: `/containers/${container}/logs?`, method: 'GET', isStream: true, options, statusCodes, abortSignal }, (error, stream) => (error === null ? resolve(stream) : reject(error)));
  });
}
