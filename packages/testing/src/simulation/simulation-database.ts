import { DatabaseSync } from 'node:sqlite';
import type { StatementSync } from 'node:sqlite';
import { migrate } from '../../../cloud/src/store/migrations/migrate.ts';
import { sqliteDatabase } from '../../../cloud/src/store/sqlite/open-database.ts';
import type { Database } from '../../../cloud/src/store/database.ts';
import type { DiskSync } from '../../../cloud/src/store/sqlite/wal-sync.ts';

/** One change of the row of a job, as it was committed. */
export interface JournalEntry {
  seq: number;
  id: string;
  endpointId: string;
  /** Null where the row is new. */
  before: string | null;
  /** Null where the row was deleted. */
  after: string | null;
  leaseBefore: string | null;
  workerBefore: string | null;
  retriesBefore: number | null;
  retries: number | null;
  attempt: number;
  ttl: number;
  executionTimeout: number;
  retention: number;
  output: string | null;
  error: string | null;
}

const NO_SYNC: DiskSync = {
  sync: () => undefined,
  syncInBackground: async () => undefined,
  pending: undefined,
  hasFailed: false,
};

const ROW = (row: 'old' | 'new'): string => `${row}.seq, ${row}.id, ${row}.endpoint_id`;
const TERMS = (row: 'old' | 'new'): string =>
  `${row}.attempt, ${row}.ttl, ${row}.execution_timeout, ${row}.retention, ${row}.output, ${row}.error`;

/**
 * Triggers write down every change of a job inside its transaction: what is rolled back is not in the
 * journal.
 */
const JOURNAL = `
  create temp table journal (entry integer primary key, seq, id, endpointId, before, after, leaseBefore, workerBefore,
    retriesBefore, retries, attempt, ttl, executionTimeout, retention, output, error);
  create temp trigger journal_insert after insert on main.jobs begin
    select note_change();
    insert into journal values (null, ${ROW('new')}, null, new.status, null, null, null, new.retries, ${TERMS('new')});
  end;
  create temp trigger journal_update after update of status, lease, output, error on main.jobs
  when old.status is not new.status or old.lease is not new.lease or old.output is not new.output
    or old.error is not new.error begin
    select note_change();
    insert into journal values (null, ${ROW('new')}, old.status, new.status, old.lease, old.worker_id, old.retries,
      new.retries, ${TERMS('new')});
  end;
  create temp trigger journal_delete after delete on main.jobs begin
    select note_change();
    insert into journal values (null, ${ROW('old')}, old.status, null, old.lease, old.worker_id, old.retries, null,
      ${TERMS('old')});
  end;
`;

/**
 * One database in memory for all runs of a process: to empty it is a hundred times faster than to create it.
 */
export class SimulationDatabase {
  readonly connection: DatabaseSync;
  readonly #readJournal: StatementSync;
  readonly #clearJournal: StatementSync;
  readonly #tables: string[];
  /** Something was written, and perhaps rolled back: to ask the journal after every step would cost a tenth of a run. */
  #mayHaveChanged = false;

  private constructor(connection: DatabaseSync) {
    this.connection = connection;
    connection.function('note_change', () => {
      this.#mayHaveChanged = true;
      return null;
    });
    connection.exec(JOURNAL);
    this.#readJournal = connection.prepare('select * from journal order by entry');
    this.#clearJournal = connection.prepare('delete from journal');
    this.#tables = connection
      .prepare("select name from main.sqlite_master where type = 'table' and name not in ('schema_version')")
      .all()
      .map((row) => String(row['name']));
  }

  static async create(): Promise<SimulationDatabase> {
    const connection = new DatabaseSync(':memory:');
    connection.exec('pragma synchronous = off; pragma temp_store = memory; pragma foreign_keys = on');
    await migrate(overConnection(connection, NO_SYNC));
    return new SimulationDatabase(connection);
  }

  /** An empty database, below a disk. */
  open(disk: DiskSync): Database {
    if (this.connection.isTransaction) this.connection.exec('rollback');
    this.connection.exec('pragma foreign_keys = off');
    for (const table of this.#tables) this.connection.exec(`delete from "${table}"`);
    this.connection.exec('pragma foreign_keys = on');
    this.connection.exec("insert into leadership (name, holder, epoch, expires_at) values ('leader', '', 0, 0)");
    this.#clearJournal.run();
    return overConnection(this.connection, disk);
  }

  /** What was committed since the last time. */
  takeJournal(): JournalEntry[] {
    if (!this.#mayHaveChanged || this.connection.isTransaction) return [];
    this.#mayHaveChanged = false;
    const entries = this.#readJournal.all() as unknown as JournalEntry[];
    if (entries.length > 0) this.#clearJournal.run();
    return entries;
  }
}

function overConnection(connection: DatabaseSync, disk: DiskSync): Database {
  return sqliteDatabase(connection, {
    disk,
    freeSpace: () => undefined,
    onFull: () => false,
    close: async () => undefined,
  });
}
