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
  const start = `${worker === undefined ? '' : `${worker}  `}${ts.slice(11, 23)}  `;
  const text = source === 'system' ? [`· ${line}`] : formatSdkLine(line);
  return `${start}${text.map(escapeExceptTabs).join(`\n${' '.repeat(start.length)}`)}\n`;
}

function escapeExceptTabs(text: string): string {
  return text.split('\t').map(escapeControlCharacters).join('\t');
}

/** The worker SDKs write their own messages as JSON, each in one line, and some messages have several lines. */
function formatSdkLine(line: string): string[] {
  const entry = jsonObjectOf(line);
  if (typeof entry?.['message'] !== 'string' || typeof entry['level'] !== 'string') return [line];
  const { message, level, requestId } = entry;
  const start = `${level === 'INFO' ? '' : `${level} `}${typeof requestId === 'string' ? `${requestId}: ` : ''}`;
  // The public SDK writes an exception of a handler as JSON within the JSON.
  const traceback = jsonObjectOf(message)?.['error_traceback'];
  return `${start}${(typeof traceback === 'string' ? traceback : message).trimEnd()}`.split(/\r?\n/);
}

function jsonObjectOf(text: string): Record<string, unknown> | undefined {
  if (!text.startsWith('{')) return undefined;
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}
