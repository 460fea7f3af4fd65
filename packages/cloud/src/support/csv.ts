/** A table as CSV (RFC 4180), with a line of names first. */
export function csvText<Column extends string>(
  columns: readonly Column[],
  rows: readonly Readonly<Record<Column, string | number>>[],
): string {
  const lines = [
    columns.join(','),
    ...rows.map((row) => columns.map((column) => csvField(row[column])).join(',')),
  ];
  return `${lines.join('\r\n')}\r\n`;
}

/** Spreadsheets run a text that begins like a formula: an apostrophe keeps it a text. */
function csvField(value: string | number): string {
  if (typeof value === 'number') return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
