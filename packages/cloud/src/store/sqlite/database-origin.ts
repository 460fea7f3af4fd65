import { closeSync, openSync, readFileSync, readSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { BerthError } from '../../support/errors.ts';

/** Where `pragma user_version` is in the file. It is on the first page, so it is copied first. */
const VERSION_OFFSET = 60;

/**
 * Which file the database is, and how its server ended: beside the database, as `<file>-origin`.
 *
 * The database is two files while its server runs, and a checkpoint moves pages from one to the other. A copy
 * of the folder takes them at different moments: SQLite opens it without complaint, and rows are missing or
 * pages are damaged. A copy is recognised by its inode and the time of its creation, which no copy keeps. It
 * is used if its server had stopped.
 */
interface Origin {
  inode: number;
  createdAt: number;
  /** The version of the database at the end; null while its server runs. */
  endedAt: number | null;
}

export interface OriginCheck {
  /** The file was copied from elsewhere; its server had stopped. */
  isCopy: boolean;
}

/**
 * Refuses the copy of a running server's database. Before anything opens the file, since SQLite would change
 * it.
 */
export function checkOrigin(file: string): OriginCheck {
  const origin = readOrigin(file);
  const found = statSync(file, { throwIfNoEntry: false });
  if (origin === undefined || found === undefined || found.size === 0) return { isCopy: false };
  if (found.ino === origin.inode || Math.round(found.birthtimeMs) === origin.createdAt)
    return { isCopy: false };
  if (origin.endedAt === null)
    throw notWhole(file, 'it was copied while its server ran, or after that had crashed');
  if (origin.endedAt !== readVersion(file))
    throw notWhole(file, 'it was copied while its server stopped, and its files are of different moments');
  return { isCopy: true };
}

export function markRunning(file: string): void {
  writeOrigin(file, null);
}

/** After the database was closed. `version` is its user_version. */
export function markEnded(file: string, version: number): void {
  writeOrigin(file, version);
}

function notWhole(file: string, why: string): BerthError {
  return new BerthError(
    'unavailable',
    `the data folder ${dirname(file)} is not a whole copy: ${why}. Make a backup with "berth backup ` +
      'FILE" and use "berth restore FILE --data FOLDER", or stop the server and copy the folder again. ' +
      `If that is not possible, delete ${file}-origin: Berth then starts with what is there, and ` +
      'acknowledged jobs may be missing',
  );
}

function writeOrigin(file: string, endedAt: number | null): void {
  try {
    const { ino, birthtimeMs } = statSync(file);
    const origin: Origin = { inode: ino, createdAt: Math.round(birthtimeMs), endedAt };
    writeFileSync(`${file}-origin`, JSON.stringify(origin), { mode: 0o600 });
  } catch {
    // The disk is full, or the folder was deleted. Berth starts and stops all the same; a copy of the folder
    // is then not recognised.
  }
}

function readOrigin(file: string): Origin | undefined {
  try {
    return JSON.parse(readFileSync(`${file}-origin`, 'utf8')) as Origin;
  } catch {
    // Written by a Berth that did not know it, or deleted to start in spite of it.
    return undefined;
  }
}

function readVersion(file: string): number {
  const opened = openSync(file, 'r');
  try {
    const bytes = Buffer.alloc(4);
    readSync(opened, bytes, 0, 4, VERSION_OFFSET);
    return bytes.readInt32BE();
  } finally {
    closeSync(opened);
  }
}
