import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { SQLITE_FILE } from '../../cloud/src/store/sqlite/copy-database.ts';
import { Sealer } from '../../cloud/src/support/crypto.ts';
import { loadMasterKey } from '../../cloud/src/support/master-key.ts';

/** Letters of an id, in order, so that the numbers 0, 1, 2 … become ids that no other row has. */
const COPY_ID = `printf('copy%010d', n)`;
/** Digits of a job's number as its id has them (domain/job-ids.ts). */
const JOB_ID =
  `printf('%08x-%04x-8%03x-8000-%012x-u1', ` + '(seq >> 12) >> 16, (seq >> 12) & 65535, seq & 4095, n)';

/**
 * Makes a large account out of a small one: rows that the server wrote are copied inside the SQLite database,
 * while no server runs. A million jobs take seconds; through the API they would take minutes.
 */
export class RowCopier {
  readonly #database: DatabaseSync;

  constructor(data: string) {
    this.#database = new DatabaseSync(join(data, SQLITE_FILE));
    const sealer = new Sealer(loadMasterKey(data, undefined, undefined));
    // A sealed value opens only in the row that it was made for.
    this.#database.function('seal_nothing', (context) => sealer.seal('{}', String(context)));
  }

  /** Copies of an endpoint or pod, without its environment; their names are `prefix` and a number. */
  copyResources(table: 'endpoints' | 'pods', id: string, count: number, prefix: string): void {
    this.#copy(table, `id = '${id}'`, count, {
      id: COPY_ID,
      name: `'${prefix}' || n`,
      created_at: 'created_at - n',
      sealed_env: `seal_nothing('${table === 'pods' ? 'pod' : 'endpoint'} ' || ${COPY_ID})`,
    });
  }

  /** Copies of the one job that waits at an endpoint, behind it in the queue. */
  copyWaitingJob(endpointId: string, count: number): void {
    const of = `endpoint_id = '${endpointId}'`;
    this.#copy('jobs', of, count, {
      seq: 'seq + n',
      id: JOB_ID.replaceAll('seq', '(seq + n)'),
      position: 'position + n',
    });
    this.#copy('job_requests', of, count, { seq: 'seq + n' });
    this.#database.exec(`update job_counts set queued = queued + ${count} where ${of}`);
  }

  close(): void {
    this.#database.close();
  }

  #copy(table: string, where: string, count: number, changed: Record<string, string>): void {
    const columns = this.#database
      .prepare(
        'select name from pragma_table_info(?) where pk = 0 or name in (select value from json_each(?))',
      )
      .all(table, JSON.stringify(Object.keys(changed)))
      .map(({ name }) => String(name));
    this.#database.exec(`insert into ${table} (${columns.join(', ')})
      with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${count})
      select ${columns.map((column) => changed[column] ?? column).join(', ')}
        from (select * from ${table} where ${where} limit 1), numbers`);
  }
}
