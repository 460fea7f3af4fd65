import { statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';

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
const MIN_RETRY_INTERVAL_MS = 1_000;

/** The room that the write-ahead log takes on the disk. */
export class WalCheckpointer {
  readonly #connection: DatabaseSync;
  readonly #folder: string;
  #madeAt = -Infinity;

  constructor(connection: DatabaseSync, database: string) {
    this.#connection = connection;
    this.#folder = dirname(database);
    this.#limit();
  }

  /**
   * The disk is full, and nothing is in a transaction. SQLite takes the log into the database after a commit alone, so
   * a log that has filled the disk would keep it full. What it held is synced in the database before it is cut off:
   * whoever waits for a sync of the log finds it kept.
   */
  freeSpace(): void {
    if (performance.now() - this.#madeAt < MIN_RETRY_INTERVAL_MS) return;
    this.#madeAt = performance.now();
    try {
      this.checkpoint();
      this.#limit();
    } catch {
      // The database has no room for it either. Whoever wanted to write is told of the full disk, and the
      // next one tries again.
    }
  }

  /** Brings all that the log holds into the database, and that to the disk. */
  checkpoint(): void {
    const told = this.#connection.prepare('pragma wal_checkpoint(truncate)').get();
    if (told?.['busy'] !== 0)
      throw new Error('the write-ahead log is in use and could not be brought into the database');
  }

  #limit(): void {
    const { bavail, bsize } = statfsSync(this.#folder);
    const pages = Math.floor((bavail * bsize) / FREE_SPACE_DIVISOR / PAGE_BYTES);
    this.#connection.exec(
      `pragma wal_autocheckpoint = ${Math.min(MAX_WAL_PAGES, Math.max(MIN_WAL_PAGES, pages))}`,
    );
  }
}
