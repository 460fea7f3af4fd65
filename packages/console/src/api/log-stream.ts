import { ApiError, send } from './client.ts';

const REOPEN_MS = 5_000;

export interface LogStreamListener {
  onConnected(connected: boolean): void;
  /** One line, as {ts, source, line}. */
  onLine(line: { ts: string; source: string; line: string }): void;
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
    stream.onmessage = ({ data }: MessageEvent<string>) => {
      const line = JSON.parse(data) as { ts: string; source: string; line: string };
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
