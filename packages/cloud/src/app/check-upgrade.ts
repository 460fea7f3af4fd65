import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type * as Sqlite from 'node:sqlite';
import { migrations } from '../store/migrations/migrations.ts';
import { openDatabase } from '../store/open-store.ts';
import { row, rows, sql } from '../store/sql.ts';
import { BerthError } from '../support/errors.ts';

export interface UpgradeCheck {
  database: 'sqlite' | 'postgres';
  /** The schema of the database; 0 where it is empty. */
  schema: number;
  /** The schema of this program. */
  program: number;
  /** What the first start of this program will change, by name. */
  steps: string[];
  /** Servers of the version that runs now can continue beside this one. */
  keepsEarlierServers: boolean;
  /** The versions of the servers that run on the database now. */
  runningVersions: string[];
}

/** Compares a database with this program. Changes nothing. */
export async function checkUpgrade(database: string, data: string): Promise<UpgradeCheck> {
  const { schema, runningVersions } =
    database === '' ? readSqlite(join(data, 'berth.db')) : await readPostgres(database, data);
  return {
    database: database === '' ? 'sqlite' : 'postgres',
    schema,
    program: migrations.length,
    steps: migrations.slice(schema).map(({ name }) => name),
    keepsEarlierServers: migrations.slice(schema).every(({ expandsOnly }) => expandsOnly === true),
    runningVersions,
  };
}

function readSqlite(file: string): { schema: number; runningVersions: string[] } {
  if (!existsSync(file))
    throw new BerthError(
      'not-found',
      `there is no database ${file}; set --data, or --database for PostgreSQL`,
    );
  const sqlite = createRequire(import.meta.url)('node:sqlite') as typeof Sqlite;
  const opened = new sqlite.DatabaseSync(file, { readOnly: true });
  try {
    const found = opened.prepare('select version from schema_version').get();
    return { schema: Number(found?.['version'] ?? 0), runningVersions: [] };
  } finally {
    opened.close();
  }
}

const SILENT_MS = 10_000;

async function readPostgres(
  url: string,
  data: string,
): Promise<{ schema: number; runningVersions: string[] }> {
  const database = await openDatabase({ database: url, data, poolSize: 2, onError: () => undefined });
  try {
    return await database.read(function* () {
      const tables = yield* rows<{ name: string }>(
        sql`select table_name as name from information_schema.tables
          where table_schema = current_schema() and table_name in ('schema_version', 'servers')`,
      );
      const has = (name: string): boolean => tables.some((table) => table.name === name);
      const found = has('schema_version')
        ? yield* row<{ version: number }>(sql`select version from schema_version`)
        : undefined;
      const running = has('servers')
        ? yield* rows<{ version: string }>(
            sql`select distinct version from servers
              where seen_at > extract(epoch from clock_timestamp()) * 1000 - ${SILENT_MS} order by version`,
          )
        : [];
      return { schema: found?.version ?? 0, runningVersions: running.map(({ version }) => version) };
    });
  } finally {
    await database.close();
  }
}
