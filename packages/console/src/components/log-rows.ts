import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { followLog, readEndedLog, readOlderLines } from '../api/log-stream.ts';
import { mergeRows, toLogRow } from './log-lines.ts';
import type { LogRow } from './log-lines.ts';

/** More than a server keeps of a worker. */
const MAX_ROWS = 1_000_000;
const FLUSH_MS = 100;
/** Lines at once; the most that the API gives. */
const PAGE = 5_000;

export interface LogSource {
  /** The address of the stream of server-sent events. */
  url: string;
  /** Shown before each line, where there are several. */
  origin?: string;
  /** Nothing is added to it any more. */
  ended?: boolean;
}

/** Lines that the server has before the first one here. */
export interface OlderLines {
  hasOlder: boolean;
  reading: boolean;
  readPage(): Promise<unknown>;
  /** Reads them all; answers every line of the log. */
  readAll(): Promise<readonly LogRow[]>;
}

export interface FollowedLog {
  rows: readonly LogRow[];
  /** Whether new lines arrive; undefined where all logs have ended. */
  live: boolean | undefined;
  /** Why the server does not give it. */
  error: Error | undefined;
  older: OlderLines;
}

/** Follows logs, and reads back. The streams continue by themselves after a lost connection. */
export function useLogRows(sources: readonly LogSource[]): FollowedLog {
  const key = JSON.stringify(sources);
  const [rows, setRows] = useState<readonly LogRow[]>([]);
  const [live, setLive] = useState(false);
  const [error, setError] = useState<Error>();
  const [reading, setReading] = useState(false);
  const [hasOlder, setHasOlder] = useState(false);
  /** The same as `rows`, for those who read on before they are drawn. */
  const all = useRef<readonly LogRow[]>([]);
  /** Of each source, the number of its first line here; 1: there is nothing before it. */
  const oldest = useRef<number[]>([]);
  const closed = useRef(new AbortController());
  const read = useRef<Promise<readonly LogRow[]>>(undefined);

  const show = useCallback((next: readonly LogRow[]) => {
    all.current = next;
    setRows(next);
    setHasOlder(oldest.current.some((seq) => seq > 1 && seq < Infinity));
  }, []);

  useEffect(() => {
    const followed = JSON.parse(key) as LogSource[];
    const abort = new AbortController();
    closed.current = abort;
    oldest.current = followed.map(() => Infinity);
    read.current = undefined;
    show([]);
    setError(undefined);
    setReading(false);
    let pending: LogRow[][] = followed.map(() => []);
    const stops = followed.map(({ url, origin, ended }, index) =>
      (ended === true ? readEndedLog : followLog)(url, {
        onConnected: setLive,
        onLine: (line) => {
          if (oldest.current[index] === Infinity) oldest.current[index] = line.seq;
          pending[index]?.push(toLogRow(line, origin));
        },
        // Of several that have ended, one may be kept for less time than the others.
        onRefused: (refusal) =>
          (ended === true && refusal.status === 404 && followed.length > 1) || setError(refusal),
      }),
    );
    // Thousands of lines a second are drawn together.
    const timer = setInterval(() => {
      if (pending.every(({ length }) => length === 0)) return;
      const arrived = mergeRows(pending);
      pending = followed.map(() => []);
      show(mergeRows([all.current, arrived]).slice(-MAX_ROWS));
    }, FLUSH_MS);
    return () => {
      abort.abort();
      clearInterval(timer);
      for (const stop of stops) stop();
    };
  }, [key, show]);

  const readBack = useCallback(
    (count: number | 'all'): Promise<readonly LogRow[]> => {
      const { signal } = closed.current;
      const work = async (): Promise<readonly LogRow[]> => {
        setReading(true);
        try {
          const older = await Promise.all(
            (JSON.parse(key) as LogSource[]).map(async ({ url, origin }, index) => {
              const before = oldest.current[index] ?? 1;
              if (before <= 1 || before === Infinity) return [];
              const found: LogRow[] = [];
              let first = before;
              await readOlderLines(url, before, count, signal, (line) => {
                first = Math.min(first, line.seq);
                found.push(toLogRow(line, origin));
              });
              oldest.current[index] = count === 'all' || found.length < count ? 1 : first;
              return found;
            }),
          );
          if (!signal.aborted) show(mergeRows([...older, all.current]));
        } catch (cause) {
          if (!signal.aborted) setError(cause as Error);
        } finally {
          if (!signal.aborted) setReading(false);
        }
        return all.current;
      };
      // One after the other: each begins where the last one ended.
      const next = (read.current ?? Promise.resolve()).then(work);
      read.current = next;
      return next;
    },
    [key, show],
  );
  const older = useMemo<OlderLines>(
    () => ({
      hasOlder,
      reading,
      readPage: () => (reading ? Promise.resolve() : readBack(PAGE)),
      readAll: () => readBack('all'),
    }),
    [hasOlder, reading, readBack],
  );
  return { rows, live: sources.every(({ ended }) => ended === true) ? undefined : live, error, older };
}
