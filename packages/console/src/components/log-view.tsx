import { useDeferredValue, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import type { ReactNode, RefObject } from 'react';
import { useVirtualizer } from '@tanstack/react-virtual';
import { Button } from './button.tsx';
import { formatCount } from './format.ts';
import { downloadText, filterRows, firstRowAt } from './log-lines.ts';
import type { LogLevel, LogRow } from './log-lines.ts';
import type { OlderLines } from './log-rows.ts';
import { ErrorNote } from './states.tsx';
import { useUrlChoice, useUrlText } from './url-state.ts';
import '../styles/log.css';

const LINE_HEIGHT = 20;
/** So near to the first line, older ones are read. */
const NEAR_TOP = 40 * LINE_HEIGHT;

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
 * Older lines are read when somebody scrolls to the first one, searches, or wants them all.
 */
export function LogView({
  rows,
  live,
  error,
  older,
  name,
  filter,
  at,
  extra,
  height = '60vh',
}: {
  rows: readonly LogRow[];
  live?: boolean | undefined;
  error?: Error | undefined;
  /** Where the server may have lines before the first one. */
  older?: OlderLines;
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
  const hasOlder = older?.hasOlder === true;
  // Heights that were measured while lines wrapped are those of no line any more.
  useEffect(() => virtual.measure(), [wrap, virtual]);
  const [first] = rows;
  // What is searched for, or where to begin, may be among the lines that are not here yet.
  const needsOlder =
    hasOlder &&
    first !== undefined &&
    (words !== '' || level !== 'debug' || (at !== undefined && Date.parse(first.ts) > at));
  const readsAll = needsOlder && older?.reading === false && error === undefined;
  useEffect(() => {
    if (readsAll) void older?.readAll();
  }, [readsAll, older]);
  useKeptPlace(scroller, shown);
  const start = useMemo(
    () => (at === undefined || needsOlder ? shown.length : firstRowAt(shown, at)),
    [shown, at, needsOlder],
  );
  const nearTop = (): void => {
    const top = scroller.current?.scrollTop ?? 0;
    if (hasOlder && !follow && top < NEAR_TOP) void older?.readPage();
  };
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
        {hasOlder && (
          <Button
            disabled={older?.reading}
            onClick={() => void older?.readPage().then(() => setFollow(false))}
          >
            Older lines
          </Button>
        )}
        <Button
          onClick={() =>
            void (hasOlder && older ? older.readAll() : Promise.resolve(rows)).then((all) =>
              download(name, all),
            )
          }
        >
          Download
        </Button>
      </div>
      <div className="muted" role="status">
        {formatCount(shown.length)} of {formatCount(rows.length)} lines
        {hasOlder && ' and older ones'}
        {older?.reading === true && ', which are being read'}
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
        onWheel={({ deltaY }) => {
          if (deltaY >= 0) return;
          setFollow(false);
          nearTop();
        }}
        onScroll={nearTop}
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
                  <span className="log-text">{wrap ? row.text : row.text.replaceAll('\n', ' ⏎ ')}</span>
                </div>
              )
            );
          })}
        </div>
      </div>
    </div>
  );
}

/** Lines that arrive above those on screen do not move them. */
function useKeptPlace(scroller: RefObject<HTMLDivElement | null>, shown: readonly LogRow[]): void {
  const before = useRef<readonly LogRow[]>([]);
  useLayoutEffect(() => {
    const [first] = before.current;
    before.current = shown;
    if (first === undefined || first === shown[0] || scroller.current === null) return;
    const added = shown.indexOf(first);
    if (added > 0) scroller.current.scrollTop += added * LINE_HEIGHT;
  }, [shown, scroller]);
}

function download(name: string, rows: readonly LogRow[]): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([downloadText(rows)], { type: 'text/plain' }));
  link.download = `${name}.log`;
  link.click();
  URL.revokeObjectURL(link.href);
}
