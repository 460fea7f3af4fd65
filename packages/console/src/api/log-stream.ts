import { ApiError, send } from './client.ts';
import { readServerEvents } from './sse.ts';

const REOPEN_MS = 5_000;

/** A line of a log. */
export interface LogLine {
  /** Counts the lines of one log from 1. */
  seq: number;
  ts: string;
  source: string;
  line: string;
}

export interface LogStreamListener {
  onConnected(connected: boolean): void;
  onLine(line: LogLine): void;
  /** The server does not give this log, in its own words. It is not tried again. */
  onRefused(error: ApiError): void;
}

/**
 * Follows a log until the returned function is called. A browser opens a lost stream again by itself, but not
 * one that was answered with an error, and does not tell that answer.
 */
export function followLog(url: string, listener: LogStreamListener): () => void {
  const closed = new AbortController();
  let stream: EventSource;
  let last: string | undefined;
  const open = (): void => {
    stream = new EventSource(
      last === undefined ? url : `${url}${url.includes('?') ? '&' : '?'}since=${encodeURIComponent(last)}`,
    );
    stream.onopen = () => listener.onConnected(true);
    stream.onmessage = ({ data, lastEventId }: MessageEvent<string>) => {
      const line = toLine(lastEventId, data);
      last = line.ts;
      listener.onLine(line);
    };
    stream.onerror = () => {
      listener.onConnected(false);
      if (stream.readyState === EventSource.CLOSED) void reopen();
    };
  };
  const reopen = async (): Promise<void> => {
    const error = await readRefusal(url, closed.signal);
    if (closed.signal.aborted) return;
    if (error !== undefined && error.status < 500) listener.onRefused(error);
    else setTimeout(() => !closed.signal.aborted && open(), error === undefined ? 0 : REOPEN_MS);
  };
  open();
  return () => {
    closed.abort();
    stream.close();
  };
}

/** Reads a log to which nothing is added any more, until the returned function is called. */
export function readEndedLog(url: string, listener: LogStreamListener): () => void {
  const closed = new AbortController();
  const read = async (): Promise<void> => {
    try {
      const response = await send(`${url}${url.includes('?') ? '&' : '?'}follow=false`, {
        signal: closed.signal,
        headers: { accept: 'text/event-stream' },
      });
      for await (const { id, data } of readServerEvents(response)) listener.onLine(toLine(id, data));
    } catch (error) {
      if (!closed.signal.aborted)
        listener.onRefused(error instanceof ApiError ? error : new ApiError(503, String(error)));
    }
  };
  void read();
  return () => closed.abort();
}

/** What the server says instead of a log; undefined if it gives it now. */
async function readRefusal(url: string, signal: AbortSignal): Promise<ApiError | undefined> {
  try {
    const response = await send(url, { signal, headers: { accept: 'text/event-stream' } });
    await response.body?.cancel();
    return undefined;
  } catch (error) {
    return error instanceof ApiError ? error : new ApiError(503, String(error));
  }
}

/**
 * Lines before one, in their order: the last so many of them, or all. Their log may end before it: the server
 * keeps the newest lines only.
 */
export async function readOlderLines(
  url: string,
  beforeSeq: number,
  count: number | 'all',
  signal: AbortSignal,
  onLine: (line: LogLine) => void,
): Promise<void> {
  const query = {
    before: beforeSeq,
    ...(count === 'all' ? { since: '1970-01-01T00:00:00Z' } : { tail: count }),
  };
  const response = await send(url.split('?')[0] ?? url, {
    query,
    signal,
    headers: { accept: 'text/event-stream' },
  });
  for await (const { id, data } of readServerEvents(response)) onLine(toLine(id, data));
}

function toLine(id: string, data: string): LogLine {
  return { seq: Number(id.slice(id.lastIndexOf('/') + 1)), ...(JSON.parse(data) as Omit<LogLine, 'seq'>) };
}
