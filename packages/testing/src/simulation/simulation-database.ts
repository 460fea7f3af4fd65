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
  webhook: string | null;
}

/** A row of the log of webhooks. */
export interface StoredDelivery {
  id: string;
  jobId: string;
  state: string;
  attempts: number;
}

export interface StoredPod {
  wanted: string;
  generation: number;
  settled: number;
}

const UNFINISHED = `select 1 from workers where ended_at is null
  union all select 1 from pods where wanted <> 'terminated' or settled = 0
  union all select 1 from webhook_deliveries where next_at is not null limit 1`;

/** Owns everything in a run. */
export const ACCOUNT = 'account';

const NO_SYNC: DiskSync = {
  sync: () => undefined,
  syncInBackground: async () => undefined,
  pending: undefined,
  hasFailed: false,
};

const ROW = (row: 'old' | 'new'): string => `${row}.seq, ${row}.id, ${row}.endpoint_id`;
const TERMS = (row: 'old' | 'new'): string =>
  `${row}.attempt, ${row}.ttl, ${row}.execution_timeout, ${row}.retention, ${row}.output, ${row}.error, ${row}.webhook`;

/**
 * Triggers write down every change of a job inside its transaction: what is rolled back is not in the
 * journal.
 */
const JOURNAL = `
  create temp table journal (entry integer primary key, seq, id, endpointId, before, after, leaseBefore, workerBefore,
    retriesBefore, retries, attempt, ttl, executionTimeout, retention, output, error, webhook);
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
  create temp trigger new_worker after insert on main.workers begin
    select note_worker(new.endpoint_id, (select json_group_array(id) from main.workers
      where endpoint_id = new.endpoint_id and state in ('starting', 'ready')));
  end;
`;

/**
 * One database in memory for all runs of a process: to empty it is a hundred times faster than to create it.
 */
export class SimulationDatabase {
  readonly connection: DatabaseSync;
  /** A worker was written for the first time: these of its endpoint shall run now. */
  onWorker: (endpointId: string, active: readonly string[]) => void = () => undefined;
  readonly #readJournal: StatementSync;
  readonly #clearJournal: StatementSync;
  readonly #selectUnfinished: StatementSync;
  readonly #selectPod: StatementSync;
  readonly #tables: string[];
  /** Something was written, and perhaps rolled back: to ask the journal after every step would cost a tenth of a run. */
  #mayHaveChanged = false;

  private constructor(connection: DatabaseSync) {
    this.connection = connection;
    connection.function('note_worker', (endpointId, active) => {
      this.onWorker(String(endpointId), JSON.parse(String(active)) as string[]);
      return null;
    });
    connection.function('note_change', () => {
      this.#mayHaveChanged = true;
      return null;
    });
    connection.exec(JOURNAL);
    this.#readJournal = connection.prepare('select * from journal order by entry');
    this.#clearJournal = connection.prepare('delete from journal');
    this.#selectUnfinished = connection.prepare(UNFINISHED);
    this.#selectPod = connection.prepare('select wanted, generation, settled from pods where id = ?');
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
    this.connection.exec(
      `insert into accounts (id, name, ssh_keys, created_at) values ('${ACCOUNT}', 'simulated', '[]', 0)`,
    );
    this.connection.exec(
      "insert into leadership (name, holder, epoch, expires_at) values ('leader', '', 0, 0)",
    );
    this.#clearJournal.run();
    return overConnection(this.connection, disk);
  }

  /** Something that shall come to an end has not. */
  hasUnfinished(): boolean {
    return this.#selectUnfinished.get() !== undefined;
  }

  /** The log of webhooks. */
  deliveries(): StoredDelivery[] {
    return this.connection
      .prepare('select id, job_id as jobId, state, attempts from webhook_deliveries order by rowid')
      .all() as unknown as StoredDelivery[];
  }

  /** The wanted state and the generation of a pod. */
  pod(id: string): StoredPod | undefined {
    return this.#selectPod.get(id) as unknown as StoredPod | undefined;
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
