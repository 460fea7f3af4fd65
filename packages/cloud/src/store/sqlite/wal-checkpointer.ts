import { closeSync, fstatSync, fsync, fsyncSync, openSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { BerthError } from '../../support/errors.ts';
import type { DiskSync, SyncFile } from './wal-sync.ts';

/**
 * How large the write-ahead log may get before it goes into the database, in pages: the longer that waits,
 * the less often a page is written twice.
 */
const MAX_WAL_PAGES = 16_000;
/**
 * On a small disk it gets no more than this part of what is free, since the database needs room to take it
 * in; but as much as SQLite would give it.
 */
const FREE_SPACE_DIVISOR = 4;
const MIN_WAL_PAGES = 1_000;
const PAGE_BYTES = 4_096;
/** A page in the log has a header. */
const FRAME_BYTES = PAGE_BYTES + 24;
/**
 * On a disk that is nearly full the log keeps this much space: other programs would take it, and deletes need
 * it. A transaction may follow when the log is as large as it may get.
 */
const KEPT_WAL_BYTES = (MIN_WAL_PAGES + 200) * FRAME_BYTES;
/**
 * While SQLite copies the log, nobody is served, and writes wait until that is on the disk. 64 MB of large jobs take 80 to
 * 160 ms to copy, as much of small jobs a third, since they write the same pages again. So the log gets as long as the
 * last copy says that this time allows, but long enough to be worth four syncs of the disk.
 */
const MAX_COPY_MS = 40;
const MIN_COPY_PAGES = 1_000;
/** On a full disk, a checkpoint that gains little or fails is not made again for so long. */
const MIN_RETRY_INTERVAL_MS = 1_000;
const MIN_GAIN_PAGES = 50;
/** To ask for the size of the log takes 7 µs: it is asked after so many commits, or after so long. */
const COMMITS_PER_CHECK = 16;
const CHECK_INTERVAL_MS = 20;
/** Where checkpoints do not keep up, SQLite makes one by itself, at so many times the size. */
const SQLITE_SHARE = 4;

/** Stops the writes while a checkpoint is made. Reads go on. */
export interface WriteGate {
  pause(): void;
  resume(error?: Error): void;
}

export interface WalCheckpointerOptions {
  connection: DatabaseSync;
  /** The file of the database. */
  database: string;
  syncFile?: SyncFile | undefined;
  maxWalPages?: number | undefined;
}

/**
 * Brings the write-ahead log into the database when it has grown. SQLite would do that after a commit and
 * wait for three syncs of the disk, and everything else with it. Here the syncs run on other threads, and
 * only writes wait for them:
 *
 * 1. The log is synced: the database must not get what a power cut could still take from the log.
 * 2. SQLite copies the log into the database, without a sync of its own.
 * 3. The database is synced. Until then the log must not be written anew, so writes wait.
 * 4. One page is written, with which SQLite begins the log anew, and the log is synced. It is a single page: whatever
 *    of it a power cut leaves, either all of the old log is valid or nothing of it, and the database has all of it.
 */
export class WalCheckpointer {
  readonly #connection: DatabaseSync;
  readonly #folder: string;
  readonly #descriptor: number;
  readonly #syncFile: SyncFile;
  readonly #maxPages: number;
  readonly #logSize: StatementSync;
  #limitPages = MIN_WAL_PAGES;
  /** After so many pages a checkpoint is made, so that its copy is short. */
  #copyPages = MIN_COPY_PAGES;
  #commits = 0;
  #checkedAt = 0;
  /** The last checkpoint for want of space. */
  #triedAt = -Infinity;
  #hasFailed = false;
  #running: Promise<void> | undefined;
  #closed = false;
  /** The database has what the log had, but may not have it on the disk. */
  #isUnsynced = false;

  constructor({ connection, database, syncFile, maxWalPages = MAX_WAL_PAGES }: WalCheckpointerOptions) {
    this.#connection = connection;
    this.#folder = dirname(database);
    this.#descriptor = openSync(database, 'r+');
    this.#syncFile = syncFile ?? ((descriptor, done) => fsync(descriptor, done));
    this.#maxPages = maxWalPages;
    this.#logSize = connection.prepare('pragma wal_checkpoint(noop)');
    this.#limit();
  }

  /** Something was committed. */
  afterCommit(disk: DiskSync, writes: WriteGate): void {
    this.#commits += 1;
    const now = performance.now();
    if (this.#commits < COMMITS_PER_CHECK && now - this.#checkedAt < CHECK_INTERVAL_MS) return;
    this.#commits = 0;
    this.#checkedAt = now;
    if (this.#running !== undefined || this.#closed) return;
    if (Number(this.#logSize.get()?.['log']) < Math.min(this.#limitPages, this.#copyPages)) return;
    this.#running = this.#checkpointBeside(disk, writes).finally(() => (this.#running = undefined));
  }

  /** No checkpoint is made any more. Resolves when the last one is over. */
  async stop(): Promise<void> {
    this.#closed = true;
    await this.#running;
  }

  /** Called after the connection is closed: a file that is closed here loses the locks of SQLite. */
  close(): void {
    closeSync(this.#descriptor);
  }

  /**
   * The disk is full, and nothing is in a transaction. SQLite takes the log into the database after a commit
   * alone, so a log that has filled the disk would keep it full. What it held is synced in the database
   * before it is begun anew: writes that wait for a sync of the log find it done. The next commit cuts it off.
   *
   * Returns true if the log has space again. `makeRoom` is asked for what the database must grow by.
   */
  freeSpace(makeRoom: (forJobs: boolean, bytes: number) => boolean): boolean {
    if (this.#running !== undefined) return false;
    const isSoon = performance.now() - this.#triedAt < MIN_RETRY_INTERVAL_MS;
    const gain = Number(this.#logSize.get()?.['log']);
    if (gain <= 0 || (isSoon && (gain < MIN_GAIN_PAGES || this.#hasFailed))) return false;
    this.#triedAt = performance.now();
    this.#hasFailed = true;
    try {
      const growth = this.#databasePages() * PAGE_BYTES - fstatSync(this.#descriptor).size;
      if (growth > 0) makeRoom(true, growth);
      this.#checkpoint('restart');
      this.#limit();
      this.#hasFailed = false;
      return true;
    } catch {
      // The database has no room for it either. The write that needed room fails with a full disk, and the
      // next one tries again.
      return false;
    }
  }

  /** Brings all that the log holds into the database, and that to the disk, at once. */
  checkpoint(): void {
    this.#checkpoint('truncate');
  }

  #checkpoint(mode: 'restart' | 'truncate'): void {
    // SQLite syncs only what it copies now.
    if (this.#isUnsynced) fsyncSync(this.#descriptor);
    this.#isUnsynced = false;
    const result = this.#connection.prepare(`pragma wal_checkpoint(${mode})`).get();
    if (result?.['busy'] !== 0)
      throw new Error('the write-ahead log is in use and could not be brought into the database');
  }

  #databasePages(): number {
    return Number(this.#connection.prepare('pragma page_count').get()?.['page_count']);
  }

  async #checkpointBeside(disk: DiskSync, writes: WriteGate): Promise<void> {
    try {
      // Most of it, so that writes wait for the rest alone.
      await disk.syncInBackground();
      writes.pause();
      await disk.syncInBackground();
    } catch {
      // The writes that wait for that sync get its error.
      return writes.resume();
    }
    try {
      const pages = Number(this.#logSize.get()?.['log']);
      const start = performance.now();
      this.#withoutSync('pragma wal_checkpoint(passive)');
      this.#copyPages = pagesInTime(pages, performance.now() - start);
      this.#isUnsynced = true;
      await this.#syncDatabase();
      this.#isUnsynced = false;
    } catch (error) {
      return writes.resume(this.#isUnsynced ? databaseNotSynced(error) : undefined);
    }
    try {
      const version = Number(this.#connection.prepare('pragma user_version').get()?.['user_version']);
      this.#withoutSync(`pragma user_version = ${version}`);
      await disk.syncInBackground();
      this.#limit();
    } catch {
      // The disk is full, or did not confirm the write: the next writes get that error.
    }
    writes.resume();
  }

  #withoutSync(statement: string): void {
    this.#connection.exec('pragma synchronous = off');
    try {
      this.#connection.exec(statement);
    } finally {
      this.#connection.exec('pragma synchronous = normal');
    }
  }

  #syncDatabase(): Promise<void> {
    return new Promise((resolve, reject) =>
      this.#syncFile(this.#descriptor, (error) => (error === null ? resolve() : reject(error))),
    );
  }

  #limit(): void {
    const { bavail, bsize } = statfsSync(this.#folder);
    const pages = Math.floor((bavail * bsize) / FREE_SPACE_DIVISOR / PAGE_BYTES);
    this.#limitPages = Math.min(this.#maxPages, Math.max(MIN_WAL_PAGES, pages));
    this.#connection.exec(`pragma wal_autocheckpoint = ${this.#limitPages * SQLITE_SHARE}`);
    const keptBytes = this.#limitPages === MIN_WAL_PAGES ? KEPT_WAL_BYTES : -1;
    this.#connection.exec(`pragma journal_size_limit = ${keptBytes}`);
  }
}

/** How long the log may get, after a copy of so many pages took so long. */
export function pagesInTime(pages: number, milliseconds: number): number {
  return Math.max(MIN_COPY_PAGES, Math.floor((pages * MAX_COPY_MS) / Math.max(1, milliseconds)));
}

/**
 * The system may have forgotten what it could not write, and the next sync would succeed without it. The log
 * still has it: after a restart it is read from there. Until then nothing may be written over it.
 */
function databaseNotSynced(cause: unknown): BerthError {
  return new BerthError(
    'unavailable',
    'the disk that holds the data directory did not confirm a write; nothing is written until Berth is restarted',
    { cause, refusesWrites: true },
  );
}
