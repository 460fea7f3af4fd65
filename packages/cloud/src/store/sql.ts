/**
 * SQL, written once for both databases.
 *
 * A **statement** is text with values beside it. A piece of work is a generator that yields
 * statements and receives their outcomes:
 *
 *     function* rename(id: string, name: string): Steps<number> {
 *       return yield* changes(sql`update templates set name = ${name} where id = ${id}`);
 *     }
 *
 * SQLite runs all steps of a transaction in one turn of the event loop, so nothing can come
 * between them; PostgreSQL runs the same steps over the wire. No line of it is written twice.
 */
export type Value = string | number | null | Uint8Array;
export type Row = Record<string, Value>;
export type Dialect = 'sqlite' | 'postgres';

export interface Statement {
  readonly parts: readonly (string | Record<Dialect, string>)[];
  readonly values: readonly Value[];
}

export interface StatementResult {
  rows: Row[];
  changes: number;
}

export type Steps<T> = Generator<Statement, T, StatementResult>;

/**
 * `parts` has one entry more than `values`: a value stands between two parts. A statement inside another is
 * spliced in.
 */
export function sql(strings: TemplateStringsArray, ...inserts: (Value | Statement)[]): Statement {
  const parts: Statement['parts'][number][][] = [[strings[0] ?? '']];
  const values: Value[] = [];
  inserts.forEach((insert, index) => {
    if (isStatement(insert)) {
      parts.at(-1)?.push(insert.parts[0] ?? '');
      insert.values.forEach((value, position) => {
        values.push(value);
        parts.push([insert.parts[position + 1] ?? '']);
      });
    } else {
      values.push(insert);
      parts.push([]);
    }
    parts.at(-1)?.push(strings[index + 1] ?? '');
  });
  return { parts: parts.map(joined), values };
}

/** Text from our own code, never from a request: a table or column name. */
export function raw(text: string): Statement {
  return { parts: [text], values: [] };
}

/** Where the two databases need different words. */
export function byDialect(words: Record<Dialect, string>): Statement {
  return { parts: [words], values: [] };
}

export function join(statements: Statement[], separator: string): Statement {
  return statements.reduce((left, right) => sql`${left}${raw(separator)}${right}`);
}

/** `(a, b) values (1, 2)` from a row whose keys are column names of ours. */
export function rowValues(row: Row): Statement {
  const columns = Object.keys(row);
  return {
    parts: [`(${columns.join(', ')}) values (`, ...columns.slice(1).map(() => ', '), ')'],
    values: columns.map((column) => row[column] ?? null),
  };
}

/** `(1, 2), (3, 4)`. Many values at once, so it is put together in one go. */
export function tuples(list: readonly (readonly Value[])[]): Statement {
  const parts: string[] = [];
  list.forEach((tuple, index) =>
    tuple.forEach((_, position) => parts.push(position > 0 ? ', ' : index > 0 ? '), (' : '(')),
  );
  return { parts: [...parts, ')'], values: list.flat() };
}

/** `a = 1, b = 2` */
export function assignments(row: Row): Statement {
  const columns = Object.keys(row);
  return {
    parts: [...columns.map((column, index) => `${index > 0 ? ', ' : ''}${column} = `), ''],
    values: columns.map((column) => row[column] ?? null),
  };
}

export function render(statement: Statement, dialect: Dialect): string {
  let text = '';
  statement.parts.forEach((part, index) => {
    if (index > 0) text += dialect === 'postgres' ? `$${index}` : '?';
    text += typeof part === 'string' ? part : part[dialect];
  });
  return text;
}

export function* rows<R>(statement: Statement): Steps<R[]> {
  return (yield statement).rows as R[];
}

export function* row<R>(statement: Statement): Steps<R | undefined> {
  return (yield statement).rows[0] as R | undefined;
}

export function* execute(statement: Statement): Steps<number> {
  return (yield statement).changes;
}

function isStatement(insert: Value | Statement): insert is Statement {
  return typeof insert === 'object' && insert !== null && 'parts' in insert;
}

/** Adjacent pieces become one; a piece that differs by database becomes a pair of whole texts. */
function joined(pieces: Statement['parts'][number][]): Statement['parts'][number] {
  if (pieces.every((piece) => typeof piece === 'string')) return pieces.join('');
  const words = (dialect: Dialect): string =>
    pieces.map((piece) => (typeof piece === 'string' ? piece : piece[dialect])).join('');
  return { sqlite: words('sqlite'), postgres: words('postgres') };
}
