import { useDeferredValue, useEffect, useMemo, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import { useVirtualizer } from '@tanstack/react-virtual';
import { followLog } from '../api/log-stream.ts';
import { Button } from './button.tsx';
import { formatCount } from './format.ts';
import { downloadText, filterRows, firstRowAt, toLogRow } from './log-lines.ts';
import type { LogLevel, LogRow } from './log-lines.ts';
import { ErrorNote } from './states.tsx';
import { useUrlChoice, useUrlText } from './url-state.ts';
import '../styles/log.css';

/** More than this is not kept on screen: the oldest lines go. */
const MAX_ROWS = 200_000;
const FLUSH_MS = 100;
const LINE_HEIGHT = 20;

export interface LogSource {
  /** The address of the stream of server-sent events. */
  url: string;
  /** Shown before each line, where there are several. */
  origin?: string;
}

export interface FollowedLog {
  rows: readonly LogRow[];
  live: boolean;
  /** Why the server does not give it. */
  error: Error | undefined;
}

/** Follows logs. The streams go on by themselves after a lost connection. */
export function useLogRows(sources: readonly LogSource[]): FollowedLog {
  const [rows, setRows] = useState<readonly LogRow[]>([]);
  const [live, setLive] = useState(false);
  const [error, setError] = useState<Error>();
  const key = JSON.stringify(sources);
  useEffect(() => {
    setRows([]);
    setError(undefined);
    let pending: LogRow[] = [];
    const stops = (JSON.parse(key) as LogSource[]).map(({ url, origin }) =>
      followLog(url, {
        onConnected: setLive,
        onLine: (line) => pending.push(toLogRow(line, origin)),
        onRefused: setError,
      }),
    );
    // Thousands of lines a second are drawn together.
    const timer = setInterval(() => {
      if (pending.length === 0) return;
      const arrived = pending;
      pending = [];
      setRows((current) => [...current, ...arrived].slice(-MAX_ROWS));
    }, FLUSH_MS);
    return () => {
      clearInterval(timer);
      for (const stop of stops) stop();
    };
  }, [key]);
  return { rows, live, error };
}

/** What of a log is shown, and how. */
export interface LogFilter {
  search: string;
  setSearch: (search: string) => void;
  level: LogLevel;
  setLevel: (level: LogLevel) => void;
  wrap: boolean;
  setWrap: (wrap: boolean) => void;
}

const LEVELS = ['debug', 'info', 'warn', 'error'] as const satisfies LogLevel[];

/** Of a page that shows one log: part of its address. */
export function useLogFilterOfPage(): LogFilter {
  const [search, setSearch] = useUrlText('q');
  const [level, setLevel] = useUrlChoice('level', LEVELS);
  const [wrap, setWrap] = useUrlChoice('wrap', ['off', 'on']);
  return {
    search,
    setSearch,
    level,
    setLevel,
    wrap: wrap === 'on',
    setWrap: (next) => setWrap(next ? 'on' : 'off'),
  };
}

/** Of a log within a dialog. */
export function useLogFilter(): LogFilter {
  const [search, setSearch] = useState('');
  const [level, setLevel] = useState<LogLevel>('debug');
  const [wrap, setWrap] = useState(false);
  return { search, setSearch, level, setLevel, wrap, setWrap };
}

/**
 * Lines of a log: search, level, wrapping, download. Only those in view are in the document, as plain text.
 */
export function LogView({
  rows,
  live,
  error,
  name,
  filter,
  at,
  extra,
  height = '60vh',
}: {
  rows: readonly LogRow[];
  live?: boolean;
  error?: Error | undefined;
  /** Of the file that is downloaded. */
  name: string;
  filter: LogFilter;
  /** The instant to begin at: the first line since then is shown once it is there. */
  at?: number | undefined;
  extra?: ReactNode;
  height?: string;
}) {
  const { search, setSearch, level, setLevel, wrap, setWrap } = filter;
  const [follow, setFollow] = useState(true);
  const words = useDeferredValue(search);
  const shown = useMemo(() => filterRows(rows, words, level), [rows, words, level]);
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: shown.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE_HEIGHT,
    overscan: 20,
  });
  const start = useMemo(() => (at === undefined ? shown.length : firstRowAt(shown, at)), [shown, at]);
  const begun = useRef<number>(undefined);
  useEffect(() => {
    if (!follow || shown.length === 0) return;
    if (start < shown.length && begun.current !== at) {
      begun.current = at;
      setFollow(false);
      virtual.scrollToIndex(start, { align: 'start' });
    } else virtual.scrollToIndex(shown.length - 1, { align: 'end' });
  }, [follow, shown.length, start, at, virtual]);
  return (
    <div className="stack">
      <div className="toolbar">
        {extra}
        <input
          className="input grow"
          type="search"
          placeholder="Search the lines"
          aria-label="Search the log"
          value={search}
          onChange={(event) => setSearch(event.target.value)}
        />
        <select
          className="input"
          aria-label="Level"
          value={level}
          onChange={(event) => setLevel(event.target.value as LogLevel)}
        >
          <option value="debug">all levels</option>
          <option value="info">info and above</option>
          <option value="warn">warnings and errors</option>
          <option value="error">errors</option>
        </select>
        <Button aria-pressed={wrap} onClick={() => setWrap(!wrap)}>
          {wrap ? 'Wrapped' : 'Wrap'}
        </Button>
        <Button aria-pressed={follow} onClick={() => setFollow(!follow)}>
          {follow ? 'Following' : 'Follow'}
        </Button>
        <Button onClick={() => download(name, rows)}>Download</Button>
      </div>
      <div className="muted" role="status">
        {formatCount(shown.length)} of {formatCount(rows.length)} lines
        {live !== undefined && (live ? ' · live' : ' · not connected')}
      </div>
      {error !== undefined && <ErrorNote error={error} />}
      <div
        className="log"
        ref={scroller}
        style={{ height }}
        tabIndex={0}
        role="log"
        aria-label="Log lines"
        onWheel={({ deltaY }) => deltaY < 0 && setFollow(false)}
      >
        <div style={{ height: virtual.getTotalSize(), position: 'relative' }}>
          {virtual.getVirtualItems().map(({ index, start, key }) => {
            const row = shown[index];
            return (
              row !== undefined && (
                <div
                  key={key}
                  data-index={index}
                  ref={wrap ? virtual.measureElement : undefined}
                  className={`log-line ${row.level} ${wrap ? 'wrap' : ''} ${index === start ? 'start' : ''}`}
                  style={{ transform: `translateY(${start}px)` }}
                >
                  <span className="log-time">{row.ts.slice(11, 23)}</span>
                  {row.origin !== undefined && <span className="log-origin">{row.origin}</span>}
                  {row.source === 'system' && <span className="log-origin">berth</span>}
                  <span className="log-text">{row.text}</span>
                </div>
              )
            );
          })}
        </div>
      </div>
    </div>
  );
}

function download(name: string, rows: readonly LogRow[]): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([downloadText(rows)], { type: 'text/plain' }));
  link.download = `${name}.log`;
  link.click();
  URL.revokeObjectURL(link.href);
}
