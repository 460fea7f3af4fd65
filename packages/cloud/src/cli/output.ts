import type { OutputStream } from './cli-context.ts';
import { formatTable } from './table.ts';
import { fitLine, fitToTerminal } from './terminal-text.ts';

export interface Column<R> {
  title: string;
  value(row: R): unknown;
}

export const OUTPUT_FORMATS = ['table', 'json', 'yaml', 'name'] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number];

/** How results are printed. */
export interface OutputMode {
  format: OutputFormat;
  /** Set for yaml, which is loaded when it is needed. */
  toYaml?(value: unknown): string;
}

/**
 * The output of a command. Lists are tables, with colours on a terminal. A single record is `key: value`
 * lines.
 */
export class Output {
  /** Text, not a form that programs read. */
  readonly isText: boolean;
  /** A person reads it, on a terminal. */
  readonly isInteractive: boolean;
  readonly #stdout: OutputStream;
  readonly #mode: OutputMode;

  constructor(stdout: OutputStream, mode: OutputMode) {
    this.#stdout = stdout;
    this.#mode = mode;
    this.isText = mode.format === 'table';
    this.isInteractive = stdout.isTTY === true && this.isText;
  }

  /** Prints a record. Notes are shown only on a terminal. */
  printRecord(value: Readonly<Record<string, unknown>>, ...notes: string[]): void {
    const { format } = this.#mode;
    if (format === 'name') return this.#names([value]);
    if (!this.isText) return this.#structured(value);
    const width = Math.max(...Object.keys(value).map((key) => key.length));
    this.#lines([
      ...Object.entries(value).flatMap(([key, content]) =>
        this.#entry(`${key}:`.padEnd(width + 2), formatValue(content)),
      ),
      ...(this.isInteractive ? notes.map((note) => fitToTerminal(note, this.#stdout)) : []),
    ]);
  }

  /** Text is broken between words on a terminal; JSON is copied from there, so it stays as it is. */
  #entry(key: string, value: string): string[] {
    const { columns = 0 } = this.#stdout;
    const isProse = this.isInteractive && columns > 0 && !/^[[{"]/.test(value);
    return isProse ? fitLine(key + value, columns, key) : [key + value];
  }

  /** Prints a list. JSON output is the server's response unchanged. */
  printTable<R>(answer: unknown, rows: readonly R[], columns: readonly Column<R>[], whenEmpty: string): void {
    const { format } = this.#mode;
    if (format === 'name') return this.#names(rows);
    if (format === 'json' || format === 'yaml') return this.#structured(answer);
    if (rows.length === 0 && this.isInteractive) return this.#lines([fitToTerminal(whenEmpty, this.#stdout)]);
    const today = this.isInteractive ? new Date().toISOString().slice(0, 10) : undefined;
    const cells = rows.map((row) => columns.map(({ value }) => formatCell(value(row), today)));
    const titles = columns.map(({ title }) => title);
    this.#lines(
      formatTable(titles, cells, {
        ...(this.#stdout.isTTY === true && { width: this.#stdout.columns }),
        colours: this.isInteractive && this.#stdout.hasColors?.() === true,
      }),
    );
  }

  /** Clears a terminal before a list is printed again; elsewhere a blank line separates them. */
  startAgain(): void {
    this.#stdout.write(this.isInteractive ? '\u001b[H\u001b[2J' : '\n');
  }

  /** Ids, or names of what has none. */
  #names(rows: readonly unknown[]): void {
    this.#lines(
      rows.flatMap((row) => {
        const { id, name, image } = row as Record<string, unknown>;
        const named = id ?? name ?? image;
        return typeof named === 'string' ? [escapeControlCharacters(named)] : [];
      }),
    );
  }

  /** Prints text unchanged, such as a file to be saved. */
  printText(text: string): void {
    this.#stdout.write(text);
  }

  /** JSON is indented on a terminal and on one line elsewhere. */
  #structured(value: unknown): void {
    const yaml = this.#mode.toYaml?.(value);
    this.#stdout.write(yaml ?? `${JSON.stringify(value, null, this.#stdout.isTTY === true ? 2 : 0)}\n`);
  }

  #lines(lines: string[]): void {
    this.#stdout.write(lines.map((line) => `${line}\n`).join(''));
  }
}

/** Formats a value for a table cell. */
export function formatValue(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-';
  if (value === true) return 'yes';
  if (value === false) return 'no';
  if (Array.isArray(value)) return value.length === 0 ? '-' : value.map(formatValue).join(', ');
  if (typeof value === 'object')
    return (
      Object.entries(value)
        .map(([key, content]) => `${key}=${formatValue(content)}`)
        .join(' ') || '-'
    );
  return escapeControlCharacters(typeof value === 'string' ? value : JSON.stringify(value));
}

const TIME = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z$/;

/** A value for a cell of a table: times are those of UTC, to the second; on a terminal today's have no date. */
function formatCell(value: unknown, today?: string): string {
  return formatValue(value).replace(TIME, (_, date: string, time: string) =>
    date === today ? time : `${date} ${time}`,
  );
}

/** Reasons may be lines of a build log, hundreds of characters long. */
const MAX_REASON_LENGTH = 120;
/** The last words of a worker that crashed, or of a build, are what someone must read. */
const CRASH = /; the last one said: |could not be built: /;
const MAX_CRASH_LENGTH = 1_000;

/** Why something waits, cut to one line of a terminal. */
export function shortenReason(reason: string): string {
  const line = reason.trim().replace(/\s+/g, ' ');
  const limit = CRASH.test(line) ? MAX_CRASH_LENGTH : MAX_REASON_LENGTH;
  return line.length > limit ? `${line.slice(0, limit - 1)}…` : line;
}

/** Names come from other users: characters that could control the terminal are escaped. */
export function escapeControlCharacters(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
