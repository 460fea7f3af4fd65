import { createReadStream, existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rename, rm, rmdir } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { DATABASE_FOLDER, KEYS_FOLDER, MANIFEST_FILE } from '../resources/backups/backup-manifest.ts';
import type { BackupManifest } from '../resources/backups/backup-manifest.ts';
import { BackupError, verifyBackup } from '../resources/backups/verify-backup.ts';
import { openPostgres } from '../store/postgres/open-database.ts';
import { restorePostgres } from '../store/postgres/restore-database.ts';
import { checkSqliteCopy, SQLITE_FILE } from '../store/sqlite/copy-database.ts';
import { DataDirectoryLocked, lockDataDirectory } from '../store/sqlite/data-directory-lock.ts';
import { unpackTar } from '../support/tar/tar-unpack.ts';

export interface RestoreRequest {
  file: string;
  data: string;
  /** A postgres URL; empty is SQLite in the data folder. */
  database: string;
  /**
   * Replace existing data: the data folder is renamed, and tables of the database are dropped.
   */
  replace: boolean;
}

export interface Restored {
  manifest: BackupManifest;
  /** Where the data folder that was there is now. */
  movedTo: string | undefined;
}

/**
 * Makes an installation from a backup. Until all of it is checked and written, nothing that exists is
 * touched.
 */
export async function restoreBackup({ file, data, database, replace }: RestoreRequest): Promise<Restored> {
  const manifest = await verifyBackup(file);
  checkKind(manifest, database);
  const folder = resolve(data);
  const isThere = existsSync(folder) && (await readdir(folder)).length > 0;
  if (isThere && !replace)
    throw new BackupError(
      `${folder} is not empty; name another folder with --data, or use --replace, which renames it`,
    );
  if (isThere) refuseInUse(folder);
  await mkdir(dirname(folder), { recursive: true });
  const draft = await mkdtemp(join(dirname(folder), `.${basename(folder)}-restore-`));
  try {
    await unpackTar(draft, createReadStream(file) as AsyncIterable<Uint8Array>, { rename: placeOf });
    await chmod(draft, 0o700);
    if (manifest.database.kind === 'sqlite') checkSqliteCopy(join(draft, SQLITE_FILE));
    else await restoreRows(draft, database, replace);
    const movedTo = isThere ? `${folder}.before-${Date.now()}` : undefined;
    if (movedTo !== undefined) await rename(folder, movedTo);
    else if (existsSync(folder)) await rmdir(folder);
    await rename(draft, folder);
    return { manifest, movedTo };
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

function checkKind({ database: { kind } }: BackupManifest, database: string): void {
  if (kind === 'postgres' && database === '')
    throw new BackupError('this is a backup of PostgreSQL; name an empty database with --database');
  if (kind === 'sqlite' && database !== '')
    throw new BackupError('this is a backup of SQLite; restore it without --database');
}

/** The path of an entry of the archive in the data folder; undefined is not restored. */
function placeOf(name: string): string | undefined {
  if ([MANIFEST_FILE, KEYS_FOLDER, DATABASE_FOLDER].includes(name)) return undefined;
  if (name.startsWith(`${KEYS_FOLDER}/`)) return name.slice(KEYS_FOLDER.length + 1);
  return name === `${DATABASE_FOLDER}/${SQLITE_FILE}` ? SQLITE_FILE : name;
}

async function restoreRows(folder: string, url: string, replace: boolean): Promise<void> {
  const database = await openPostgres({ url, poolSize: 2, onError: () => undefined });
  try {
    await restorePostgres(database, join(folder, DATABASE_FOLDER), { replace });
  } finally {
    await database.close();
  }
  await rm(join(folder, DATABASE_FOLDER), { recursive: true });
}

function refuseInUse(folder: string): void {
  try {
    lockDataDirectory(folder).release();
  } catch (error) {
    if (error instanceof DataDirectoryLocked) throw new BackupError(error.message);
    throw error;
  }
}
