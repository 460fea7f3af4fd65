import { DatabaseSync } from 'node:sqlite';
import type { StatementSync } from 'node:sqlite';
import { migrate } from '../../../cloud/src/store/migrations/migrate.ts';
import { sqliteDatabase } from '../../../cloud/src/store/sqlite/open-database.ts';
import type { Database } from '../../../cloud/src/store/database.ts';
import { INSTANT_DISK } from './simulated-disk.ts';
import { FIRST_ROWS, UNFINISHED } from './simulation-storage.ts';
import type {
  JournalEntry,
  SimulationStorage,
  StoredDelivery,
  StoredPod,
  StoredInterval,
} from './simulation-storage.ts';
import type { DiskSync } from '../../../cloud/src/store/sqlite/wal-sync.ts';

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
    attemptBefore, attempt, ttl, executionTimeout, retention, output, error, webhook);
  create temp trigger journal_insert after insert on main.jobs begin
    select note_change();
    insert into journal values (null, ${ROW('new')}, null, new.status, null, null, null, ${TERMS('new')});
  end;
  create temp trigger journal_update after update of status, lease, output, error on main.jobs
  when old.status is not new.status or old.lease is not new.lease or old.output is not new.output
    or old.error is not new.error begin
    select note_change();
    insert into journal values (null, ${ROW('new')}, old.status, new.status, old.lease, old.worker_id, old.attempt,
      ${TERMS('new')});
  end;
  create temp trigger journal_delete after delete on main.jobs begin
    select note_change();
    insert into journal values (null, ${ROW('old')}, old.status, null, old.lease, old.worker_id, old.attempt,
      ${TERMS('old')});
  end;
  create temp trigger new_worker after insert on main.workers begin
    select note_worker(new.endpoint_id, (select json_group_array(id) from main.workers
      where endpoint_id = new.endpoint_id and state in ('starting', 'ready')));
  end;
  ${instanceTriggers('workers', (row) => `${row}.endpoint_id`)}
  ${instanceTriggers('pods', () => 'null')}
`;

function instanceTriggers(table: string, endpointOf: (row: string) => string): string {
  return ['insert', 'update', 'delete']
    .map(
      (change) => `create temp trigger leader_${change}_${table} after ${change} on main.${table} begin
        select note_instance_write(${endpointOf(change === 'delete' ? 'old' : 'new')},
          (select json_group_object(name, holder) from
            (select name, holder from main.leadership union all select name, holder from main.worker_shards)));
      end;`,
    )
    .join('');
}

/**
 * Statements that a run has prepared are prepared for the next one, too: every run opens the store anew,
 * which would cost 5 ms.
 */
class ReusingConnection extends DatabaseSync {
  readonly #prepared = new Map<string, { statements: StatementSync[]; used: number }>();

  constructor() {
    super(':memory:');
  }

  /** Nobody uses those any more that were prepared before. */
  reuse(): void {
    for (const known of this.#prepared.values()) known.used = 0;
  }

  override prepare(text: string): StatementSync {
    const known = this.#prepared.get(text) ?? { statements: [], used: 0 };
    this.#prepared.set(text, known);
    const statement = known.statements[known.used] ?? super.prepare(text);
    known.statements[known.used] = statement;
    known.used += 1;
    return statement;
  }
}

/**
 * One database in memory for all runs of a process: to empty it is a hundred times faster than to create it.
 */
export class SimulationDatabase implements SimulationStorage {
  readonly kind = 'sqlite';
  readonly #connection: ReusingConnection;
  onWorker: SimulationStorage['onWorker'] = () => undefined;
  onInstanceWrite: SimulationStorage['onInstanceWrite'] = () => undefined;
  readonly #readJournal: StatementSync;
  readonly #clearJournal: StatementSync;
  readonly #selectUnfinished: StatementSync;
  readonly #selectPod: StatementSync;
  /** Deletes everything. */
  readonly #empty: string;
  /**
   * Something was written, and perhaps rolled back: to ask the journal after every step would cost a tenth of
   * a run.
   */
  #mayHaveChanged = false;

  private constructor(connection: ReusingConnection) {
    this.#connection = connection;
    connection.function('note_worker', (endpointId, active) => {
      this.onWorker(String(endpointId), JSON.parse(String(active)) as string[]);
      return null;
    });
    connection.function('note_instance_write', (endpointId, holders) => {
      this.onInstanceWrite(
        endpointId === null ? null : String(endpointId),
        JSON.parse(String(holders)) as Record<string, string>,
      );
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
    this.#empty = connection
      .prepare("select name from main.sqlite_master where type = 'table' and name not in ('schema_version')")
      .all()
      .map(({ name }) => `delete from "${String(name)}"`)
      .join(';');
  }

  static async create(): Promise<SimulationDatabase> {
    const connection = new ReusingConnection();
    connection.exec(
      'pragma auto_vacuum = incremental; pragma synchronous = off; pragma temp_store = memory; pragma ' +
        'foreign_keys = on',
    );
    await migrate(overConnection(connection, INSTANT_DISK));
    return new SimulationDatabase(connection);
  }

  async clear(): Promise<void> {
    const connection = this.#connection;
    if (connection.isTransaction) connection.exec('rollback');
    this.limitSize(false);
    // Pages that an earlier run left free would be room on a full disk.
    connection.exec(`pragma foreign_keys = off; ${this.#empty}; pragma foreign_keys = on; pragma incremental_vacuum;
      ${FIRST_ROWS.join(';')}`);
    this.#clearJournal.run();
    this.#mayHaveChanged = false;
  }

  open(disk: DiskSync): Database {
    this.#connection.reuse();
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

  async intervals(): Promise<StoredInterval[]> {
    return this.#all<StoredInterval>(
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
