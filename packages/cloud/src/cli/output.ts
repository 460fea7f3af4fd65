import type { OutputStream } from './cli-context.ts';

export interface Column<R> {
  title: string;
  value(row: R): unknown;
}

/**
 * What a command answers. People at a terminal get aligned tables and `key: value` lines;
 * programs get the same as JSON, with nothing before or after it.
 */
export class Output {
  readonly isInteractive: boolean;
  readonly #stdout: OutputStream;

  constructor(stdout: OutputStream, json: boolean) {
    this.#stdout = stdout;
    this.isInteractive = stdout.isTTY === true && !json;
  }

  /** One thing. The notes are for people alone. */
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

  /** A list. JSON is the answer as the server gave it. */
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

  /** Text that is the same for everyone, such as a file to be saved. */
  printText(text: string): void {
    this.#stdout.write(text);
  }

  /** On a terminal JSON is indented, since a person asked for it; elsewhere it is one line. */
  #json(value: unknown): void {
    this.#stdout.write(`${JSON.stringify(value, null, this.#stdout.isTTY === true ? 2 : 0)}\n`);
  }

  #lines(lines: string[]): void {
    this.#stdout.write(lines.map((line) => `${line}\n`).join(''));
  }
}

/** How a value reads in a cell. */
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

/** Names come from other people: what would move the cursor or colour the terminal is written out instead. */
export function escapeControlCharacters(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
