import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { BerthError } from '../../support/errors.ts';
import type { Database } from '../database.ts';
import { applyMigrations } from '../migrations/migrate.ts';
import { migrations } from '../migrations/migrations.ts';
import { execute, raw, rows, sql } from '../sql.ts';
import type { Steps } from '../sql.ts';
import { TABLES_FILE } from './copy-database.ts';
import type { CopiedTable, CopiedTables } from './copy-database.ts';

const READ_BYTES = 1024 * 1024;
const MAX_BATCH_BYTES = 4 * 1024 * 1024;
const MAX_BATCH_ROWS = 2_000;

export interface RestoreOptions {
  /** Drops the tables that are there. Without it a database that is not empty is refused. */
  replace: boolean;
}

/** Writes a copy into a database, all of it or nothing. */
export async function restorePostgres(
  database: Database,
  folder: string,
  { replace }: RestoreOptions,
): Promise<void> {
  const copied = JSON.parse(readFileSync(join(folder, TABLES_FILE), 'utf8')) as CopiedTables;
  if (copied.schema > migrations.length)
    throw new BerthError(
      'unavailable',
      `the backup was made by a newer Berth (its schema is ${copied.schema}, this one knows ` +
        `${migrations.length}); restore it with that version`,
    );
  await database.write(() => restoreTables(copied, folder, replace));
}

function* restoreTables(
  { schema, tables, sequences }: CopiedTables,
  folder: string,
  replace: boolean,
): Steps<void> {
  const existing = yield* rows<{ name: string }>(
    sql`select tablename as name from pg_tables where schemaname = current_schema()`,
  );
  if (existing.length > 0 && !replace)
    throw new BerthError(
      'conflict',
      `the database is not empty (it has the table ${existing[0]?.name}); name an empty one, or drop ` +
        'its tables with --replace',
    );
  for (const { name } of existing) yield raw(`drop table if exists ${quoted(name)} cascade`);
  yield* applyMigrations('postgres', migrations.slice(0, schema));
  // A migration may have written rows of its own.
  for (const { name } of tables.toReversed()) yield* execute(raw(`delete from ${quoted(name)}`));
  for (const table of tables) {
    const count = yield* restoreTable(table, join(folder, `${table.name}.jsonl`));
    if (count !== table.rows)
      throw new BerthError(
        'unavailable',
        `the backup has ${count} rows of ${table.name} instead of ${table.rows}`,
      );
  }
  for (const { name, last } of sequences)
    yield sql`select setval(${quoted(name)}::regclass, ${last}::bigint)`;
}

function* restoreTable({ name, columns }: CopiedTable, file: string): Steps<number> {
  const names = columns.map((column) => quoted(column.name)).join(', ');
  const values = columns.map(({ type }, index) => `(line->>${index})::${type}`).join(', ');
  const insert = raw(`insert into ${quoted(name)} (${names}) overriding system value select ${values}`);
  let count = 0;
  for (const batch of batches(file)) {
    yield sql`${insert} from jsonb_array_elements(${`[${batch.join(',')}]`}::jsonb) as line`;
    count += batch.length;
  }
  return count;
}

/** Read while the transaction waits: its steps do not wait for anything else. */
function* batches(file: string): Generator<string[]> {
  let batch: string[] = [];
  let bytes = 0;
  for (const line of lines(file)) {
    batch.push(line);
    bytes += line.length;
    if (bytes < MAX_BATCH_BYTES && batch.length < MAX_BATCH_ROWS) continue;
    yield batch;
    batch = [];
    bytes = 0;
  }
  if (batch.length > 0) yield batch;
}

function* lines(file: string): Generator<string> {
  const opened = openSync(file, 'r');
  try {
    const decoder = new StringDecoder('utf8');
    const buffer = Buffer.alloc(READ_BYTES);
    const parts: string[] = [];
    for (let read = readSync(opened, buffer); read > 0; read = readSync(opened, buffer)) {
      const pieces = decoder.write(buffer.subarray(0, read)).split('\n');
      parts.push(pieces[0] ?? '');
      for (const piece of pieces.slice(1)) {
        yield parts.splice(0).join('');
        parts.push(piece);
      }
    }
  } finally {
    closeSync(opened);
  }
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
