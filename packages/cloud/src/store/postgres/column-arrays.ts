import type { Value } from '../sql.ts';

const TYPES: Record<string, string> = {
  low_priority: 'int',
  retries_left: 'int',
  retries: 'int',
  attempt: 'int',
  drained: 'int',
  has_output: 'int',
  has_error: 'int',
  looks: 'int',
  busy: 'int',
  empties: 'int',
  endpoint: 'int',
  worker: 'int',
  seq: 'bigint',
  turn: 'bigint',
  place: 'bigint',
  position: 'bigint',
  created_at: 'bigint',
  queued_at: 'bigint',
  ttl_at: 'bigint',
  ttl: 'bigint',
  execution_timeout: 'bigint',
  retention: 'bigint',
  taken_at: 'bigint',
  ended_at: 'bigint',
  due_at: 'bigint',
  look_at: 'bigint',
  seen_at: 'bigint',
  queued: 'bigint',
  running: 'bigint',
  completed: 'bigint',
  failed: 'bigint',
  retried: 'bigint',
  accelerated: 'integer',
};

/** Columns of JSON, or of what holds JSON and the marks of places: no value of theirs is empty or holds this. So they travel as one text, which needs no quotes; nothing between two marks stands for none. */
const SEPARATED_TEXT_COLUMNS = ['request', 'output', 'error', 'jobs'];
const VALUE_SEPARATOR = '\u001d';
const VALUE_SEPARATOR_SQL = 'chr(29)';

/** The columns of a batch travel as one array each, and are rows again under this name. */
export function unnest(columns: readonly string[], from = 1, name = 'given'): string {
  const arrays = columns.map((column, index) =>
    SEPARATED_TEXT_COLUMNS.includes(column)
      ? `string_to_array($${from + index}::text, ${VALUE_SEPARATOR_SQL}, '')`
      : `$${from + index}::${TYPES[column] ?? 'text'}[]`,
  );
  return `unnest(${arrays.join(', ')}) as ${name} (${columns.join(', ')})`;
}

/** Rows turned into one array for each column, written as PostgreSQL reads them: the driver's own way takes several times as long. */
export function toColumnArrays(rows: readonly (readonly Value[])[], columns: readonly string[]): string[] {
  return columns.map((column, index) =>
    SEPARATED_TEXT_COLUMNS.includes(column)
      ? rows.map((row) => row[index] ?? '').join(VALUE_SEPARATOR)
      : `{${rows.map((row) => literal(row[index] ?? null)).join(',')}}`,
  );
}

function literal(value: Value): string | number {
  if (value === null) return 'null';
  return typeof value === 'number' ? value : quoted(String(value));
}

function quoted(text: string): string {
  return `"${/["\\]/.test(text) ? text.replace(/["\\]/g, '\\$&') : text}"`;
}
