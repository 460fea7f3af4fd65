import type { Client } from '../client.ts';
import { Refusal } from '../client.ts';
import { visible } from '../output.ts';

/** One line of a log, as the server tells it. */
export interface LogLine {
  ts: string;
  source: 'container' | 'system';
  line: string;
}

/** A server may keep the stream open although all is told; after so long without a line, all is. */
const SILENCE_MS = 750;

/** Follows a log until the server ends it or the signal does. */
export async function* followLog(client: Client, path: string, signal: AbortSignal): AsyncGenerator<LogLine> {
  for await (const { data } of client.events(path, signal)) yield JSON.parse(data) as LogLine;
}

/** A worker may go, and its log with it, between being listed and being asked. */
export function ifThere<T>(otherwise: T): (error: unknown) => T {
  return (error) => {
    if (error instanceof Refusal && error.status === 404) return otherwise;
    throw error;
  };
}

/** What a log holds now. */
export async function readLog(client: Client, path: string): Promise<LogLine[]> {
  const enough = new AbortController();
  const lines: LogLine[] = [];
  let silence = setTimeout(() => enough.abort(), SILENCE_MS * 4);
  try {
    for await (const line of followLog(client, path, enough.signal)) {
      lines.push(line);
      clearTimeout(silence);
      silence = setTimeout(() => enough.abort(), SILENCE_MS);
    }
  } finally {
    clearTimeout(silence);
  }
  return lines;
}

/** A line for people. Tabs are what they are; anything else that could play with a terminal is written out. */
export function shownLine({ ts, source, line }: LogLine, worker?: string): string {
  const text = (source === 'system' ? `· ${line}` : readable(line)).split('\t').map(visible).join('\t');
  return `${worker === undefined ? '' : `${worker}  `}${ts.slice(11, 23)}  ${text}\n`;
}

/** The worker libraries write their own lines as JSON, for programs. */
function readable(line: string): string {
  if (!line.startsWith('{')) return line;
  try {
    const { message, level, requestId } = JSON.parse(line) as Record<string, unknown>;
    if (typeof message !== 'string' || typeof level !== 'string') return line;
    return `${level === 'INFO' ? '' : `${level} `}${typeof requestId === 'string' ? `${requestId}: ` : ''}${message}`;
  } catch {
    return line;
  }
}
