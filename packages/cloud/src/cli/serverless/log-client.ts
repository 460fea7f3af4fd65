import type { ApiClient } from '../api-client.ts';
import { ApiError } from '../api-client.ts';
import { escapeControlCharacters } from '../output.ts';

/** One log line, as the server sends it. */
export interface LogLineView {
  ts: string;
  source: 'container' | 'system';
  line: string;
}

/**
 * A server may keep the stream open at the end of the log; after this time without a line, the log is
 * complete.
 */
const IDLE_TIMEOUT_MS = 750;

/** Follows a log until the server ends it or the signal aborts. */
export async function* followLog(
  client: ApiClient,
  path: string,
  signal: AbortSignal,
): AsyncGenerator<LogLineView> {
  for await (const { data } of client.events(path, signal)) yield JSON.parse(data) as LogLineView;
}

/** A worker may end, and its log be deleted, after it was listed. */
export function ignoreNotFound<T>(otherwise: T): (error: unknown) => T {
  return (error) => {
    if (error instanceof ApiError && error.status === 404) return otherwise;
    throw error;
  };
}

/** Reads the current content of a log. */
export async function readLog(client: ApiClient, path: string): Promise<LogLineView[]> {
  const enough = new AbortController();
  const lines: LogLineView[] = [];
  let silence = setTimeout(() => enough.abort(), IDLE_TIMEOUT_MS * 4);
  try {
    for await (const line of followLog(client, path, enough.signal)) {
      lines.push(line);
      clearTimeout(silence);
      silence = setTimeout(() => enough.abort(), IDLE_TIMEOUT_MS);
    }
  } finally {
    clearTimeout(silence);
  }
  return lines;
}

/** Formats a line for a terminal. Control characters other than tabs are escaped. */
export function formatLogLine({ ts, source, line }: LogLineView, worker?: string): string {
  const text = (source === 'system' ? `· ${line}` : formatSdkLine(line))
    .split('\t')
    .map(escapeControlCharacters)
    .join('\t');
  return `${worker === undefined ? '' : `${worker}  `}${ts.slice(11, 23)}  ${text}\n`;
}

/** The worker SDKs write their own lines as JSON. */
function formatSdkLine(line: string): string {
  if (!line.startsWith('{')) return line;
  try {
    const { message, level, requestId } = JSON.parse(line) as Record<string, unknown>;
    if (typeof message !== 'string' || typeof level !== 'string') return line;
    return `${level === 'INFO' ? '' : `${level} `}${typeof requestId === 'string' ? `${requestId}: ` : ''}${message}`;
  } catch {
    return line;
  }
}
