import { Client } from 'pg';
import type { Database } from '../../../cloud/src/store/database.ts';
import { createMigratedDatabase } from '../migrated-database.ts';
import type { MigratedDatabase } from '../migrated-database.ts';
import { countPostgresCalls } from './postgres-calls.ts';
import type { PostgresCalls } from './postgres-calls.ts';
import { FIRST_ROWS, UNFINISHED } from './simulation-storage.ts';
import type {
  JournalEntry,
  SimulationStorage,
  StoredDelivery,
  StoredPod,
  StoredInterval,
} from './simulation-storage.ts';

const COLUMNS = `seq, id, "endpointId", before, after, "leaseBefore", "workerBefore", "attemptBefore",
  attempt, ttl, "executionTimeout", retention, output, error, webhook`;
const TERMS = (row: 'old' | 'new'): string =>
  `${row}.attempt, ${row}.ttl, ${row}.execution_timeout, ${row}.retention, ${row}.output, ${row}.error, ${row}.webhook`;

/** As on SQLite: written inside the transaction of the change. */
const JOURNAL = `
  create unlogged table simulation_journal (entry bigint generated always as identity, seq bigint, id text,
    "endpointId" text, before text, after text, "leaseBefore" text, "workerBefore" text,
    "attemptBefore" bigint, attempt bigint,
    ttl bigint, "executionTimeout" bigint, retention bigint, output text, error text, webhook text);
  create unlogged table simulation_workers (endpoint_id text, active text);
  create function simulation_note_job() returns trigger language plpgsql as $$ begin
    if tg_op = 'INSERT' then
      insert into simulation_journal (${COLUMNS})
      values (new.seq, new.id, new.endpoint_id, null, new.status, null, null,
        null, ${TERMS('new')});
    elsif tg_op = 'DELETE' then
      insert into simulation_journal (${COLUMNS}) values (old.seq, old.id, old.endpoint_id, old.status, null, old.lease,
        old.worker_id, old.attempt, ${TERMS('old')});
    elsif old.status is distinct from new.status or old.lease is distinct from new.lease
      or old.output is distinct from new.output or old.error is distinct from new.error then
      insert into simulation_journal (${COLUMNS}) values (new.seq, new.id, new.endpoint_id, old.status, new.status,
        old.lease, old.worker_id, old.attempt, ${TERMS('new')});
    end if;
    return null;
  end $$;
  create trigger simulation_jobs after insert or update or delete on jobs
    for each row execute function simulation_note_job();
  create function simulation_note_worker() returns trigger language plpgsql as $$ begin
    insert into simulation_workers select new.endpoint_id, json_agg(id)::text from workers
      where endpoint_id = new.endpoint_id and state in ('starting', 'ready');
    return null;
  end $$;
  create trigger simulation_workers after insert on workers
    for each row execute function simulation_note_worker();
`;

/** In one call: it is made after every step that may have written. */
const TAKE_JOURNAL = `
  with entries as (delete from simulation_journal returning *), started as (delete from simulation_workers returning *)
  select (select json_agg(entries order by entry)::text from entries) as journal,
    (select json_agg(started)::text from started) as workers`;

/**
 * A real PostgreSQL. Calls take real time, so virtual time waits for each; the order of concurrent ones may
 * differ.
 */
export class PostgresSimulationDatabase implements SimulationStorage {
  readonly kind = 'postgres';
  onWorker: SimulationStorage['onWorker'] = () => undefined;
  onInstanceWrite: SimulationStorage['onInstanceWrite'] = () => undefined;
  readonly #migrated: MigratedDatabase;
  readonly #client: Client;
  readonly #calls: PostgresCalls;
  readonly #tables: string;
  #journal: JournalEntry[] = [];

  private constructor(migrated: MigratedDatabase, client: Client, tables: string) {
    this.#migrated = migrated;
    this.#client = client;
    this.#tables = tables;
    this.#calls = countPostgresCalls(client);
  }

  static async create(): Promise<PostgresSimulationDatabase> {
    const migrated = await createMigratedDatabase('postgres');
    const client = new Client({ connectionString: migrated.testDatabase.url });
    await client.connect();
    await client.query(JOURNAL);
    const { rows } = await client.query<{ name: string }>(
      `select quote_ident(tablename) as name from pg_tables where schemaname = 'public' and tablename ` +
        `<> 'schema_version'`,
    );
    return new PostgresSimulationDatabase(migrated, client, rows.map(({ name }) => name).join(', '));
  }

  async clear(): Promise<void> {
    await this.#client.query(`truncate ${this.#tables} restart identity cascade`);
    for (const statement of FIRST_ROWS) await this.#client.query(statement);
    this.#journal = [];
  }

  open(): Database {
    return this.#migrated.database;
  }

  limitSize(): void {
    // Its disk is its own.
  }

  whenIdle(): Promise<void> | undefined {
    return this.#calls.whenIdle();
  }

  async readJournal(): Promise<void> {
    const [found] = await this.#all<{ journal: string | null; workers: string | null }>(TAKE_JOURNAL);
    this.#journal.push(...(JSON.parse(found?.journal ?? '[]') as JournalEntry[]));
    const workers = JSON.parse(found?.workers ?? '[]') as { endpoint_id: string; active: string }[];
    for (const { endpoint_id, active } of workers) this.onWorker(endpoint_id, JSON.parse(active) as string[]);
  }

  takeJournal(): JournalEntry[] {
    return this.#journal.splice(0);
  }

  async hasUnfinished(): Promise<boolean> {
    return (await this.#all(UNFINISHED)).length > 0;
  }

  deliveries(): Promise<StoredDelivery[]> {
    return this.#all('select id, job_id as "jobId", state, attempts from webhook_deliveries');
  }

  intervals(): Promise<StoredInterval[]> {
    return this.#all(
      `select unit_id as "unitId", began_at as "beganAt", ended_at as "endedAt" from usage_stretches
        order by began_at, id`,
    );
  }

  async pods(): Promise<ReadonlyMap<string, StoredPod>> {
    const all = await this.#all<StoredPod & { id: string }>(
      'select id, wanted, generation, settled from pods',
    );
    return new Map(all.map((pod) => [pod.id, pod]));
  }

  async close(): Promise<void> {
    this.#calls.stop();
    await this.#client.end();
    await this.#migrated.drop();
  }

  async #all<T>(text: string): Promise<T[]> {
    const { rows } = await this.#client.query({ text, types: { getTypeParser: (oid) => parserOf(oid) } });
    return rows as T[];
  }
}

const INT8 = 20;

function parserOf(oid: number): (text: string) => unknown {
  return oid === INT8 || oid === 23 ? Number : String;
}
