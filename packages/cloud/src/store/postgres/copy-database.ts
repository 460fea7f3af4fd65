import { createWriteStream, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Pool, PoolClient } from 'pg';

export const TABLES_FILE = 'tables.json';
const MIN_ROWS = 10;
const MAX_ROWS = 2_000;
/** Of one read: rows of jobs may have megabytes each. */
const FEW_BYTES = 512 * 1024;
const MANY_BYTES = 8 * 1024 * 1024;

/**
 * One table of a copy, whose rows are lines of `<name>.jsonl`: arrays of the columns as PostgreSQL writes
 * them as text.
 */
export interface CopiedTable {
  name: string;
  columns: { name: string; type: string }[];
  rows: number;
}

export interface CopiedTables {
  schema: number;
  /** A table stands after those that it refers to. */
  tables: CopiedTable[];
  /** What the next number of a sequence follows. */
  sequences: { name: string; last: string }[];
}

/**
 * A copy of all tables in one snapshot of the database, made with nothing but SQL. Resolves to the version of
 * its schema.
 */
export async function copyPostgres(pool: Pool, folder: string): Promise<number> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    await client.query('begin isolation level repeatable read read only');
    const tables: CopiedTable[] = [];
    for (const table of await listTables(client))
      tables.push({ ...table, rows: await copyTable(client, table, join(folder, `${table.name}.jsonl`)) });
    const { rows: sequences } = await client.query<{ name: string; last: string }>(
      `select sequencename as name, last_value::text as last from pg_sequences
        where schemaname = current_schema() and last_value is not null`,
    );
    const { rows: versions } = await client.query<{ version: number }>('select version from schema_version');
    const copied: CopiedTables = { schema: versions[0]?.version ?? 0, tables, sequences };
    await client.query('commit');
    writeFileSync(join(folder, TABLES_FILE), JSON.stringify(copied), { mode: 0o600 });
    return copied.schema;
  } catch (error) {
    broken = error as Error;
    throw error;
  } finally {
    client.release(broken);
  }
}

async function listTables(client: PoolClient): Promise<Omit<CopiedTable, 'rows'>[]> {
  const { rows: columns } = await client.query<{ table: string; name: string; type: string }>(
    `select class.relname as table, attribute.attname as name,
        format_type(attribute.atttypid, attribute.atttypmod) as type
      from pg_class as class join pg_attribute as attribute on attribute.attrelid = class.oid
      where class.relnamespace = current_schema()::regnamespace and class.relkind = 'r'
        and attribute.attnum > 0 and not attribute.attisdropped and attribute.attgenerated = ''
      order by class.relname, attribute.attnum`,
  );
  const { rows: references } = await client.query<{ from: string; to: string }>(
    `select child.relname as from, parent.relname as to
      from pg_constraint as it join pg_class as child on child.oid = it.conrelid
        join pg_class as parent on parent.oid = it.confrelid
      where it.contype = 'f' and child.relnamespace = current_schema()::regnamespace`,
  );
  const names = [...new Set(columns.map(({ table }) => table))];
  return parentsFirst(names, references).map((table) => ({
    name: table,
    columns: columns.filter((column) => column.table === table).map(({ name, type }) => ({ name, type })),
  }));
}

function parentsFirst(
  names: readonly string[],
  references: readonly { from: string; to: string }[],
): string[] {
  const ordered = new Set<string>();
  const add = (name: string, path: readonly string[]): void => {
    if (ordered.has(name) || path.includes(name)) return;
    for (const { from, to } of references) if (from === name) add(to, [...path, name]);
    ordered.add(name);
  };
  for (const name of names) add(name, []);
  return [...ordered];
}

/** Resolves to the number of rows. */
async function copyTable(
  client: PoolClient,
  { name, columns }: Omit<CopiedTable, 'rows'>,
  file: string,
): Promise<number> {
  const values = columns.map((column) => `${quoted(column.name)}::text`).join(', ');
  await client.query(
    `declare copied no scroll cursor for select array_to_json(array[${values}])::text as line from ${quoted(name)}`,
  );
  let count = 0;
  const lines = async function* (): AsyncGenerator<string> {
    let size = MIN_ROWS;
    for (;;) {
      const { rows } = await client.query<{ line: string }>(`fetch ${size} from copied`);
      if (rows.length === 0) return;
      count += rows.length;
      const text = `${rows.map(({ line }) => line).join('\n')}\n`;
      yield text;
      if (text.length < FEW_BYTES) size = Math.min(MAX_ROWS, size * 2);
      if (text.length > MANY_BYTES) size = Math.max(1, Math.floor(size / 4));
    }
  };
  await pipeline(Readable.from(lines()), createWriteStream(file, { mode: 0o600 }));
  await client.query('close copied');
  return count;
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
