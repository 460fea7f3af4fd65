import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { createMigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import type { MigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import * as transitions from '../../domain/job-transitions.ts';
import type { Job } from '../../domain/job-records.ts';
import { newJob } from '../../queue/job-submission.ts';
import { Statements } from './statements.ts';

const NOW = 1_800_000_000_000;
const ENDPOINT = {
  id: 'endpoint',
  accountId: 'one',
  executionTimeout: 0,
  jobTtl: 86_400_000,
  retention: null,
  maxRetries: 1,
};
const JOBS = 10;

describe('the connections of the queue', () => {
  let postgres: MigratedDatabase;
  let pool: pg.Pool;
  let statements: Statements;

  before(async () => {
    postgres = await createMigratedDatabase('postgres');
    pool = new pg.Pool({ connectionString: postgres.testDatabase.url, max: 1, query_timeout: 200 });
    pool.on('error', () => undefined);
    statements = new Statements(pool);
  });
  after(async () => {
    await pool.end();
    await postgres.drop();
  });

  const process = async (): Promise<unknown> =>
    (await statements.arrays('select pg_backend_pid()')())[0]?.[0];

  test('bind named parameters, in prepared statements too', async () => {
    const sum = statements.arrays('select :b::int - :a::int, :a::int', 'difference');
    assert.deepEqual([await sum({ a: 1, b: 3 }), await sum({ b: 5, a: 4 })], [[[2, 1]], [[1, 4]]]);
  });

  test('are closed after a cancelled statement and after any unexpected error', async () => {
    const seen = [await process()];
    await assert.rejects(statements.rows('select pg_sleep(1)')(), /does not answer|timeout/);
    seen.push(await process());
    await assert.rejects(statements.rows('select nothing')(), /does not exist/);
    seen.push(await process());
    assert.equal(new Set(seen).size, seen.length);
  });

  test('that cannot be opened are reported', async () => {
    const nowhere = new pg.Pool({ host: '127.0.0.1', port: 1 });
    await assert.rejects(new Statements(nowhere).rows('select 1')(), (error: Error) =>
      /ECONNREFUSED/.test(String(error.cause ?? error)),
    );
    await nowhere.end();
  });

  test('alone have planner settings', async () => {
    const { rows } = await pool.query<{ sourcefile: string | null }>(
      `select name from pg_settings where source = 'client' and name in ('enable_seqscan', ` +
        `'enable_hashjoin', 'plan_cache_mode')`,
    );
    assert.deepEqual(rows, []);
    const shown = await postgres.database.read(function* () {
      return (yield { parts: ['show enable_seqscan'], values: [] }).rows;
    });
    assert.deepEqual(shown, [{ enable_seqscan: 'on' }]);
  });

  test('stay where two servers change the same jobs', async () => {
    const [one, other] = [postgres.database.jobs(), postgres.database.jobs()];
    const processes = async (): Promise<Set<number>> => {
      const { rows } = await pool.query<{ pid: number }>(
        `select pid from pg_stat_activity where application_name = 'berth' and datname = current_database()`,
      );
      return new Set(rows.map(({ pid }) => pid));
    };
    const seen = new Set<number>();
    let number = 0;
    for (let round = 0; round < 10; round += 1) {
      await Promise.all(
        Array.from({ length: JOBS }, () =>
          one.submit(newJob(ENDPOINT, 'one', '{"input":1}', {}, ++number, NOW)),
        ),
      );
      const taken = await one.take(
        ENDPOINT.id,
        transitions.takeRequest(
          () => Array.from({ length: JOBS }, (_, index) => ({ workerId: 'w', lease: `${number} ${index}` })),
          NOW,
        ),
      );
      const finish = (job: Job): ReturnType<typeof transitions.finish> =>
        transitions.finish(job, { workerId: 'w' }, { output: '1', error: null }, NOW + 1);
      const changes = taken.map(({ job: { seq } }) => ({ endpointId: ENDPOINT.id, seq, next: finish }));
      await Promise.all([
        one.changeAll(changes),
        other.changeAll(changes.toReversed()),
        other.listRunning(ENDPOINT.id),
      ]);
      for (const pid of await processes()) seen.add(pid);
    }
    assert.equal((await one.counts(ENDPOINT.id)).completed, number);
    assert.ok(seen.size <= 5, `${seen.size} connections were opened by a pool of 5`);
  });
});
