import { DatabaseSync } from 'node:sqlite';
import type { StatementSync } from 'node:sqlite';
import { migrate } from '../../../cloud/src/store/migrations/migrate.ts';
import { sqliteDatabase } from '../../../cloud/src/store/sqlite/open-database.ts';
import type { Database } from '../../../cloud/src/store/database.ts';
import { FIRST_ROWS, UNFINISHED } from './simulation-storage.ts';
import type {
  JournalEntry,
  SimulationStorage,
  StoredDelivery,
  StoredPod,
  StoredStretch,
} from './simulation-storage.ts';
import type { DiskSync } from '../../../cloud/src/store/sqlite/wal-sync.ts';

const NO_SYNC: DiskSync = {
  sync: () => undefined,
  syncInBackground: async () => undefined,
  pending: undefined,
  hasFailed: false,
};

const NO_LIMIT = 1_073_741_823;
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
export class SimulationDatabase implements SimulationStorage {
  readonly kind = 'sqlite';
  readonly #connection: DatabaseSync;
  onWorker: SimulationStorage['onWorker'] = () => undefined;
  readonly #readJournal: StatementSync;
  readonly #clearJournal: StatementSync;
  readonly #selectUnfinished: StatementSync;
  readonly #selectPod: StatementSync;
  readonly #tables: string[];
  /** Something was written, and perhaps rolled back: to ask the journal after every step would cost a tenth of a run. */
  #mayHaveChanged = false;

  private constructor(connection: DatabaseSync) {
    this.#connection = connection;
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

  async clear(): Promise<void> {
    const connection = this.#connection;
    if (connection.isTransaction) connection.exec('rollback');
    this.limitSize(false);
    connection.exec('pragma foreign_keys = off');
    for (const table of this.#tables) connection.exec(`delete from "${table}"`);
    connection.exec('pragma foreign_keys = on');
    for (const statement of FIRST_ROWS) connection.exec(statement);
    this.#clearJournal.run();
  }

  open(disk: DiskSync): Database {
    return overConnection(this.#connection, disk);
  }

  limitSize(isLimited: boolean): void {
    const pages = Number(this.#connection.prepare('pragma page_count').get()?.['page_count']);
    this.#connection.exec(`pragma max_page_count = ${isLimited ? pages : NO_LIMIT}`);
  }

  async hasUnfinished(): Promise<boolean> {
    return this.#selectUnfinished.get() !== undefined;
  }

  async deliveries(): Promise<StoredDelivery[]> {
    return this.#all<StoredDelivery>('select id, job_id as jobId, state, attempts from webhook_deliveries');
  }

  async stretches(): Promise<StoredStretch[]> {
    return this.#all<StoredStretch>(
      `select unit_id as unitId, began_at as beganAt, ended_at as endedAt from usage_stretches
        order by began_at, id`,
    );
  }

  async pods(): Promise<ReadonlyMap<string, StoredPod>> {
    const all = this.#all<StoredPod & { id: string }>('select id, wanted, generation, settled from pods');
    return new Map(all.map((pod) => [pod.id, pod]));
  }

  podNow(id: string): StoredPod | undefined {
    return this.#selectPod.get(id) as unknown as StoredPod | undefined;
  }

  async close(): Promise<void> {
    this.#connection.close();
  }

  #all<T>(query: string): T[] {
    return this.#connection.prepare(query).all() as unknown as T[];
  }

  takeJournal(): JournalEntry[] {
    if (!this.#mayHaveChanged || this.#connection.isTransaction) return [];
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
