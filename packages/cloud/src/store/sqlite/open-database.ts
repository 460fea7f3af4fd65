import { closeSync, existsSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { StatementSync } from 'node:sqlite';
import { BerthError } from '../../support/errors.ts';
import type { Database } from '../database.ts';
import { UniqueViolation } from '../database.ts';
import { NO_OBSERVER } from '../store-observer.ts';
import type { StoreObserver } from '../store-observer.ts';
import { render } from '../sql.ts';
import type { StatementResult, Row, Statement, Steps } from '../sql.ts';
import { singleServerElection } from '../leader-election.ts';
import { noopWakeupBus } from '../wakeup-bus.ts';
import { checkSqliteCopy, copySqlite } from './copy-database.ts';
import { checkOrigin, markEnded, markRunning } from './database-origin.ts';
import { GroupCommit } from './group-commit.ts';
import { sqliteJobStore } from './job-store-driver.ts';
import { WalCheckpointer } from './wal-checkpointer.ts';
import type { WriteGate } from './wal-checkpointer.ts';
import { WalSync } from './wal-sync.ts';
import type { DiskSync, SyncFile } from './wal-sync.ts';

const MAX_USER_VERSION = 2 ** 31;
const SQLITE_FULL = 13;
const SQLITE_IOERR = 10;
const SQLITE_CONSTRAINT_PRIMARYKEY = 1555;
const SQLITE_CONSTRAINT_UNIQUE = 2067;

/**
 * A commit is on disk before it is acknowledged: the write-ahead log, synced by `WalSync`. One process has
 * the file, and locks it once.
 */
const PRAGMAS = `
  pragma locking_mode = exclusive;
  pragma journal_mode = wal;
  pragma synchronous = normal;
  pragma foreign_keys = on;
  pragma busy_timeout = 5000;
  pragma cache_size = -32000;
`;

export interface SqliteOptions {
  /**
   * A write failed because the disk is full. Returns true after space was freed, so many bytes if they are
   * known: the write is tried again.
   */
  onFull?(forJobs?: boolean, bytes?: number): boolean;
  /** Replaces the sync of the disk, in tests. */
  syncFile?: SyncFile;
  /** Of the write-ahead log, before it goes into the database; in tests. */
  maxWalPages?: number;
  observer?: StoreObserver;
}

/** What surrounds an open connection: its disk, and what happens when that is full. */
export interface SqliteSurroundings {
  disk: DiskSync;
  /** Frees what the write-ahead log holds. Nothing is in a transaction. */
  freeSpace(): void;
  onFull(forJobs?: boolean): boolean;
  /** Something was committed. */
  afterCommit?(writes: WriteGate): void;
  /** Nothing is committed beside the groups any more. */
  beforeClose?(): Promise<void>;
  observer?: StoreObserver;
  close(): Promise<void>;
}

/** SQLite gives its other files the mode of this one. */
function createPrivately(file: string): void {
  if (file !== ':memory:' && !existsSync(file)) closeSync(openSync(file, 'a', 0o600));
}

export function openSqlite(
  file: string,
  { onFull = () => false, syncFile, maxWalPages, observer = NO_OBSERVER }: SqliteOptions = {},
): Database {
  const { isCopy } = checkOrigin(file);
  if (isCopy) checkSqliteCopy(file);
  createPrivately(file);
  const connection = openConnection(file, onFull);
  markRunning(file);
  const room = new WalCheckpointer({ connection, database: file, syncFile, maxWalPages });
  const wal = new WalSync(file, () => room.checkpoint(), syncFile, observer);
  return sqliteDatabase(connection, {
    observer,
    disk: wal,
    freeSpace: () => void room.freeSpace(onFull),
    // The space that the log has is used before any of the reserve.
    onFull: (forJobs) => room.freeSpace(onFull) || onFull(forJobs),
    afterCommit: (writes) => room.afterCommit(wal, writes),
    beforeClose: () => room.stop(),
    close: async () => {
      await wal.pending;
      const version = countUp(connection);
      connection.close();
      room.close();
      wal.close();
      if (version !== undefined) markEnded(file, version);
    },
  });
}

/** The database over a connection that is open. */
export function sqliteDatabase(
  connection: DatabaseSync,
  { disk, freeSpace, onFull, afterCommit, beforeClose, close, observer = NO_OBSERVER }: SqliteSurroundings,
): Database {
  const group: GroupCommit = new GroupCommit(connection, disk, failed, {
    makeRoom: (error) => isFull(error) && onFull(true),
    afterCommit: () => afterCommit?.(group),
    observer,
  });
  const prepared = new Map<string, { statement: StatementSync; returnsRows: boolean }>();
  /** A write was refused, and none was tried with success since. */
  let refusesWrites = false;

  function execute(statement: Statement): StatementResult {
    const text = render(statement, 'sqlite');
    let ready = prepared.get(text);
    if (ready === undefined) {
      const created = connection.prepare(text);
      ready = { statement: created, returnsRows: created.columns().length > 0 };
      prepared.set(text, ready);
    }
    if (ready.returnsRows) {
      const rows = ready.statement.all(...statement.values) as Row[];
      return { rows, changes: rows.length };
    }
    return { rows: [], changes: Number(ready.statement.run(...statement.values).changes) };
  }

  function run<T>(steps: () => Steps<T>): T {
    const work = steps();
    let step = work.next();
    while (step.done !== true) step = work.next(execute(step.value));
    return step.value;
  }

  function transaction<T>(steps: () => Steps<T>): T {
    for (;;) {
      try {
        const start = performance.now();
        connection.exec('begin immediate');
        const result = run(steps);
        connection.exec('commit');
        observer.committed(1, performance.now() - start);
        return result;
      } catch (error) {
        if (connection.isTransaction) connection.exec('rollback');
        if (!isFull(error) || !onFull()) throw error;
      }
    }
  }

  /**
   * Only where the last write was refused: a write for every probe would wear the disk. It gets nothing of
   * the disk reserve.
   */
  function probeWrite(): void {
    if (!refusesWrites) return;
    connection.exec('begin immediate');
    try {
      connection.exec(
        "insert into settings (name, value) values ('write probe', '1') on conflict (name) do update " +
          'set value = excluded.value',
      );
      connection.exec('commit');
      refusesWrites = false;
    } catch (error) {
      if (connection.isTransaction) connection.exec('rollback');
      throw error;
    }
  }

  /** After the rollback. A retry finds space, if any can be freed. */
  function failed(error: unknown): Error {
    if (isFull(error) && !connection.isTransaction) freeSpace();
    const translated = translate(error);
    refusesWrites ||= translated instanceof BerthError && translated.refusesWrites;
    return translated;
  }

  /** Turns a thrown error into a rejected promise, translated by `failed`. */
  function toPromise<T>(work: () => T): Promise<T> {
    try {
      return Promise.resolve(work());
    } catch (error) {
      return Promise.reject(failed(error));
    }
  }

  return {
    dialect: 'sqlite',
    server: 'single',
    read: (steps) => group.read(() => run(steps), 'resources'),
    checkWritable: async () => {
      // A checkpoint on a slow disk is no reason to be called unready.
      while (refusesWrites && group.writable !== undefined) await group.writable;
      await toPromise(probeWrite);
    },
    write: async (steps) => {
      while (group.writable !== undefined) await group.writable;
      const result = await toPromise(() => transaction(steps));
      refusesWrites = false;
      await group.syncResources();
      return result;
    },
    jobs: () => sqliteJobStore(connection, group),
    wakeups: async () => noopWakeupBus,
    exclusively: (_name, work) => work(),
    leaderElection: singleServerElection,
    copyTo: (folder) => copySqlite(connection, folder),
    close: async () => {
      await beforeClose?.();
      group.close();
      await close();
    },
  };
}

/** The write-ahead log is created here, and that needs space too. */
function openConnection(file: string, onFull: () => boolean): DatabaseSync {
  for (;;) {
    const connection = new DatabaseSync(file);
    try {
      connection.exec(PRAGMAS);
      return connection;
    } catch (error) {
      connection.close();
      const isDiskError = isFull(error) || (codeOf(error) & 0xff) === SQLITE_IOERR;
      if (!isDiskError || !onFull()) throw error;
    }
  }
}

function codeOf(error: unknown): number {
  return error instanceof Error && 'errcode' in error ? Number(error.errcode) : 0;
}

/**
 * Changes the first page, so that a copy that was begun before the end differs from one that was begun after
 * it.
 */
function countUp(connection: DatabaseSync): number | undefined {
  try {
    const before = Number(connection.prepare('pragma user_version').get()?.['user_version']);
    const version = (before + 1) % MAX_USER_VERSION;
    connection.exec(`pragma user_version = ${version}`);
    return version;
  } catch {
    // The disk is full. A copy of the folder will then be refused.
    return undefined;
  }
}

function isFull(error: unknown): boolean {
  return codeOf(error) === SQLITE_FULL;
}

function translate(error: unknown): Error {
  if (!(error instanceof Error) || !('errcode' in error))
    return error instanceof Error ? error : new Error(String(error));
  const code = Number(error.errcode);
  if (code === SQLITE_CONSTRAINT_UNIQUE || code === SQLITE_CONSTRAINT_PRIMARYKEY)
    return new UniqueViolation(error);
  if (isFull(error))
    return new BerthError(
      'unavailable',
      'the disk that holds the data directory is full; nothing was changed',
      { cause: error, refusesWrites: true },
    );
  if ((code & 0xff) === SQLITE_IOERR)
    return new BerthError(
      'unavailable',
      'the data directory cannot be read or written; nothing was changed',
      { cause: error, refusesWrites: true },
    );
  return error;
}
