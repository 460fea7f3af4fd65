import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Client } from 'pg';
import { SQLITE_FILE } from '../../cloud/src/store/sqlite/copy-database.ts';
import { Sealer } from '../../cloud/src/support/crypto.ts';
import { loadMasterKey } from '../../cloud/src/support/master-key.ts';

/** What differs between the databases. */
interface CopyTarget {
  /** Letters of an id, in order, so that the numbers 0, 1, 2 … become ids that no other row has. */
  copyId: string;
  /** A number with leading zeros, as digits of base 16. */
  hex(expression: string, digits: number): string;
  /** A table `numbers` with one column `n`: 1, 2 … count. */
  numbers(count: number): string;
  columns(table: string): Promise<string[]>;
  execute(statement: string): Promise<void>;
  /** A sealed value opens only in the row that it was made for. */
  sealCopies(table: string, seal: (id: string) => string): Promise<void>;
  close(): Promise<void>;
}

/**
 * Makes a large account out of a small one: rows that the server wrote are copied inside the database, while no
 * server runs. A million jobs take seconds; through the API they would take minutes.
 */
export class RowCopier {
  readonly #target: CopyTarget;
  readonly #sealer: Sealer;

  private constructor(target: CopyTarget, sealer: Sealer) {
    this.#target = target;
    this.#sealer = sealer;
  }

  /** `url` is what --database takes; empty is SQLite in the data folder. */
  static async open({ data, url }: { data: string; url: string }): Promise<RowCopier> {
    const sealer = new Sealer(loadMasterKey(data, undefined, undefined));
    return new RowCopier(url === '' ? sqliteTarget(data) : await postgresTarget(url), sealer);
  }

  /** Copies of an endpoint or pod, without its environment; their names are `prefix` and a number. */
  async copyResources(table: 'endpoints' | 'pods', id: string, count: number, prefix: string): Promise<void> {
    await this.#copy(table, `id = '${id}'`, count, {
      id: this.#target.copyId,
      name: `'${prefix}' || n`,
      created_at: 'created_at - n',
    });
    const kind = table === 'pods' ? 'pod' : 'endpoint';
    await this.#target.sealCopies(table, (copy) => this.#sealer.seal('{}', `${kind} ${copy}`));
  }

  /** Copies of the one job that waits at an endpoint, behind it in the queue. */
  async copyWaitingJob(endpointId: string, count: number): Promise<void> {
    const of = `endpoint_id = '${endpointId}'`;
    await this.#copy('jobs', of, count, {
      seq: 'seq + n',
      id: this.#jobId('(seq + n)'),
      position: 'position + n',
    });
    await this.#copy('job_requests', of, count, { seq: 'seq + n' });
    // An endpoint may have several rows; one of them counts the job.
    await this.#target.execute(`update job_counts set queued = queued + ${count} where ${of} and queued = 1`);
  }

  close(): Promise<void> {
    return this.#target.close();
  }

  /** The digits of a job's number as its id has them (domain/job-ids.ts). */
  #jobId(seq: string): string {
    const { hex } = this.#target;
    const millisecond = `${hex(`(${seq} >> 12) >> 16`, 8)} || '-' || ${hex(`(${seq} >> 12) & 65535`, 4)}`;
    return `${millisecond} || '-8' || ${hex(`${seq} & 4095`, 3)} || '-8000-' || ${hex('n', 12)} || '-u1'`;
  }

  async #copy(table: string, where: string, count: number, changed: Record<string, string>): Promise<void> {
    const columns = await this.#target.columns(table);
    await this.#target.execute(`insert into ${table} (${columns.join(', ')})
      with recursive ${this.#target.numbers(count)}
      select ${columns.map((column) => changed[column] ?? column).join(', ')}
        from (select * from ${table} where ${where} limit 1) as copied, numbers`);
  }
}

function sqliteTarget(data: string): CopyTarget {
  const database = new DatabaseSync(join(data, SQLITE_FILE));
  return {
    copyId: `printf('copy%010d', n)`,
    hex: (expression, digits) => `printf('%0${digits}x', ${expression})`,
    numbers: (count) => `numbers (n) as (select 1 union all select n + 1 from numbers where n < ${count})`,
    columns: async (table) =>
      database
        .prepare('select name from pragma_table_info(?)')
        .all(table)
        .map(({ name }) => String(name)),
    execute: async (statement) => database.exec(statement),
    async sealCopies(table, seal) {
      database.function('seal_copy', (id) => seal(String(id)));
      database.exec(`update ${table} set sealed_env = seal_copy(id) where id like 'copy%'`);
    },
    close: async () => database.close(),
  };
}

async function postgresTarget(url: string): Promise<CopyTarget> {
  const client = new Client({ connectionString: url });
  await client.connect();
  return {
    copyId: `'copy' || lpad(n::text, 10, '0')`,
    hex: (expression, digits) => `lpad(to_hex(${expression}), ${digits}, '0')`,
    numbers: (count) => `numbers (n) as (select generate_series(1, ${count}))`,
    columns: async (table) => {
      const { rows } = await client.query<{ attname: string }>(
        'select attname from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped',
        [table],
      );
      return rows.map(({ attname }) => attname);
    },
    execute: async (statement) => void (await client.query(statement)),
    async sealCopies(table, seal) {
      const { rows } = await client.query<{ id: string }>(`select id from ${table} where id like 'copy%'`);
      const ids = rows.map(({ id }) => id);
      await client.query(
        `update ${table} set sealed_env = made.sealed from unnest($1::text[], $2::text[]) as made (id, sealed)
          where ${table}.id = made.id`,
        [ids, ids.map(seal)],
      );
    },
    close: () => client.end(),
  };
}
