import { chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';
import { BerthError } from '../../support/errors.ts';
import { migrations } from '../migrations/migrations.ts';

export const SQLITE_FILE = 'berth.db';
/** How many pages are copied between two turns of the event loop. Requests wait for one such step at most. */
const PAGES_PER_STEP = 500;
const RESTORE_HINT = 'restore an intact backup (docs/backup.md)';

/**
 * A consistent copy while the database is used: SQLite brings into it what is written meanwhile. Resolves to
 * the version of its schema.
 */
export async function copySqlite(connection: DatabaseSync, folder: string): Promise<number> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, SQLITE_FILE);
  await backup(connection, file, { rate: PAGES_PER_STEP });
  chmodSync(file, 0o600);
  return schemaOf(file);
}

/** Checks a copy before it is used: its structure, and that this Berth knows its schema. */
export function checkSqliteCopy(file: string): void {
  const copy = new DatabaseSync(file);
  try {
    const problems = copy
      .prepare('pragma integrity_check(5)')
      .all()
      .map((row) => String(row['integrity_check']))
      .filter((text) => text !== 'ok');
    if (problems.length > 0)
      throw new BerthError('unavailable', `the database is damaged: ${problems.join('; ')}; ${RESTORE_HINT}`);
  } catch (error) {
    if (error instanceof BerthError) throw error;
    throw new BerthError(
      'unavailable',
      `the database is damaged: ${(error as Error).message}; ${RESTORE_HINT}`,
      {
        cause: error,
      },
    );
  } finally {
    copy.close();
  }
  const schema = schemaOf(file);
  if (schema > migrations.length)
    throw new BerthError(
      'unavailable',
      `the database was written by a newer Berth (its schema is ${schema}, this one knows ${migrations.length})`,
    );
}

function schemaOf(file: string): number {
  const copy = new DatabaseSync(file);
  try {
    // One file, without a log beside it.
    copy.exec('pragma journal_mode = delete');
    return Number(copy.prepare('select version from schema_version').get()?.['version'] ?? 0);
  } finally {
    copy.close();
  }
}
