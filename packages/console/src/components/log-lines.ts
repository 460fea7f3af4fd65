/** Longer lines are cut on screen; the download has them whole. */
export const MAX_SHOWN_CHARS = 2_000;

export type LogLevel = 'error' | 'warn' | 'info' | 'debug';

export interface LogRow {
  ts: string;
  source: string;
  /** As it was written. */
  line: string;
  /** Without colours and control characters, cut. */
  text: string;
  /** For searching without regard to case. */
  search: string;
  level: LogLevel;
  origin?: string;
}

// Colours and cursor movements, and other control characters: log lines are shown as plain text.
const ANSI = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-_])/g;
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f]/g;

export function toLogRow(
  { ts, source, line }: { ts: string; source: string; line: string },
  origin?: string,
): LogRow {
  const entry = sdkEntryOf(line);
  const whole = entry?.text ?? line;
  const cut = whole.length > MAX_SHOWN_CHARS * 2 ? whole.slice(0, MAX_SHOWN_CHARS * 2) : whole;
  const plain = cut.replace(ANSI, '').replace(CONTROL, '');
  const isCut = whole.length > cut.length || plain.length > MAX_SHOWN_CHARS;
  const text = isCut
    ? `${plain.slice(0, MAX_SHOWN_CHARS)} … (${line.length} characters; download for all of them)`
    : plain;
  return {
    ts,
    source,
    line,
    text,
    search: plain.toLowerCase(),
    level: levelOf(entry?.level ?? plain),
    ...(origin !== undefined && { origin }),
  };
}

/**
 * The worker SDKs write their own messages as JSON: `{"requestId": …, "message": …, "level": …}`. Shown are the
 * level, the job and the message, or the traceback that the public SDK writes as JSON within the message.
 */
function sdkEntryOf(line: string): { text: string; level: string } | undefined {
  // Many lines are of no SDK, and are not parsed.
  if (!line.startsWith('{"requestId"')) return undefined;
  const entry = jsonObjectOf(line);
  if (typeof entry?.['message'] !== 'string' || typeof entry['level'] !== 'string') return undefined;
  const { requestId, message, level } = entry;
  const traceback = jsonObjectOf(message)?.['error_traceback'];
  const shownLevel = level === 'INFO' ? '' : `${level} `;
  const job = typeof requestId === 'string' ? `${requestId}: ` : '';
  const text = (typeof traceback === 'string' ? traceback : message).trimEnd();
  return { text: `${shownLevel}${job}${text}`, level };
}

function jsonObjectOf(text: string): Record<string, unknown> | undefined {
  if (!text.startsWith('{')) return undefined;
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

/** From the words that log libraries use; a line without any is information. */
export function levelOf(text: string): LogLevel {
  const head = text.slice(0, 400);
  if (/\b(?:error|fatal|critical|exception|traceback|panic)\b|"level":\s*"?(?:error|fatal|[56]0)/i.test(head))
    return 'error';
  if (/\bwarn(?:ing)?\b|"level":\s*"?(?:warn|40)/i.test(head)) return 'warn';
  return /\bdebug\b|\btrace\b|"level":\s*"?(?:debug|trace|[12]0)/i.test(head) ? 'debug' : 'info';
}

const RANK: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 };

/** Rows of at least this level that contain the words. */
export function filterRows(rows: readonly LogRow[], words: string, atLeast: LogLevel): readonly LogRow[] {
  const wanted = words.toLowerCase();
  if (wanted === '' && atLeast === 'debug') return rows;
  const rank = RANK[atLeast];
  return rows.filter(
    ({ search, level }) => RANK[level] >= rank && (wanted === '' || search.includes(wanted)),
  );
}

/**
 * The first row at or after an instant; their number where none is. The rows of one log are in the order of
 * their time; of several that arrive together, nearly so.
 */
export function firstRowAt(rows: readonly LogRow[], at: number): number {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (Date.parse(rows[middle]?.ts ?? '') < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Several parts of a log, or of several logs, as one. Where they do not follow each other, their lines are
 * ordered by time.
 */
export function mergeRows(parts: readonly (readonly LogRow[])[]): readonly LogRow[] {
  const filled = parts.filter(({ length }) => length > 0);
  const rows = filled.flat();
  const follows = filled.every(
    (part, index) => index === 0 || (filled[index - 1]?.at(-1)?.ts ?? '') <= (part[0]?.ts ?? ''),
  );
  return follows ? rows : rows.sort((one, other) => (one.ts < other.ts ? -1 : Number(one.ts > other.ts)));
}

/** The text of a download: whole lines. */
export function downloadText(rows: readonly LogRow[]): string {
  return rows.map(({ ts, line }) => `${ts} ${line}\n`).join('');
}
