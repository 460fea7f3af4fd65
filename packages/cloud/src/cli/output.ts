import type { OutputStream } from './cli-context.ts';

export interface Column<R> {
  title: string;
  value(row: R): unknown;
}

/**
 * The output of a command. A terminal gets aligned tables and `key: value` lines; otherwise the output is
 * JSON and nothing else.
 */
export class Output {
  readonly isInteractive: boolean;
  readonly #stdout: OutputStream;

  constructor(stdout: OutputStream, json: boolean) {
    this.#stdout = stdout;
    this.isInteractive = stdout.isTTY === true && !json;
  }

  /** Prints a record. Notes are shown only on a terminal. */
  printRecord(value: Readonly<Record<string, unknown>>, ...notes: string[]): void {
    if (!this.isInteractive) return this.#json(value);
    const width = Math.max(...Object.keys(value).map((key) => key.length));
    this.#lines([
      ...Object.entries(value).map(
        ([key, content]) => `${`${key}:`.padEnd(width + 1)} ${formatValue(content)}`,
      ),
      ...notes,
    ]);
  }

  /** Prints a list. JSON output is the server's response unchanged. */
  printTable<R>(answer: unknown, rows: readonly R[], columns: readonly Column<R>[], whenEmpty: string): void {
    if (!this.isInteractive) return this.#json(answer);
    if (rows.length === 0) return this.#lines([whenEmpty]);
    const cells = [
      columns.map(({ title }) => title),
      ...rows.map((row) => columns.map(({ value }) => formatValue(value(row)))),
    ];
    const widths = columns.map((_, column) =>
      Math.max(...cells.map((row) => [...(row[column] ?? '')].length)),
    );
    this.#lines(
      cells.map((row) =>
        row
          .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - [...cell].length))
          .join('  ')
          .trimEnd(),
      ),
    );
  }

  /** Prints text unchanged, such as a file to be saved. */
  printText(text: string): void {
    this.#stdout.write(text);
  }

  /** JSON is indented on a terminal and on one line elsewhere. */
  #json(value: unknown): void {
    this.#stdout.write(`${JSON.stringify(value, null, this.#stdout.isTTY === true ? 2 : 0)}\n`);
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

/** Names come from other users: characters that could control the terminal are escaped. */
export function escapeControlCharacters(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
