import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { createMigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import type { MigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import { newJob } from '../../queue/job-submission.ts';
import * as transitions from '../../domain/job-transitions.ts';
import type { Job } from '../../domain/job-records.ts';
import { queryQueuePool } from './queue-pool.ts';

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

describe('the connections of the lanes', () => {
  let postgres: MigratedDatabase;
  let lanes: pg.Pool;

  before(async () => {
    postgres = await createMigratedDatabase('postgres');
    lanes = new pg.Pool({ connectionString: postgres.testDatabase.url, max: 1, query_timeout: 200 });
    lanes.on('error', () => undefined);
  });
  after(async () => {
    await lanes.end();
    await postgres.drop();
  });

  const process = async (): Promise<number | undefined> =>
    (await queryQueuePool<[number]>(lanes, { text: 'select pg_backend_pid()' }))[0]?.[0];

  test('outlive a statement that took itself back', async () => {
    const first = await process();
    for (let round = 0; round < 3; round += 1)
      await assert.rejects(
        queryQueuePool(lanes, { name: 'guard', text: 'select 1 / $1::int', values: [0] }),
        /division by zero/,
      );
    assert.deepEqual(
      await queryQueuePool(lanes, { name: 'guard', text: 'select 1 / $1::int', values: [1] }),
      [[1]],
    );
    assert.equal(await process(), first);
  });

  test('do not outlive a statement that was given up, or anything else that nobody expects', async () => {
    const seen = [await process()];
    await assert.rejects(queryQueuePool(lanes, { text: 'select pg_sleep(1)' }), /timeout/);
    seen.push(await process());
    await assert.rejects(queryQueuePool(lanes, { text: 'select nothing' }), /does not exist/);
    seen.push(await process());
    assert.equal(new Set(seen).size, seen.length);
  });

  test('that cannot be had are told', async () => {
    const nowhere = new pg.Pool({ host: '127.0.0.1', port: 1 });
    await assert.rejects(queryQueuePool(nowhere, { text: 'select 1' }), /ECONNREFUSED/);
    await nowhere.end();
  });

  test('stay where two servers disagree about jobs', async () => {
    const [one, other] = [postgres.database.jobs(), postgres.database.jobs()];
    const processes = async (): Promise<Set<number>> => {
      const { rows } = await lanes.query<{ pid: number }>(
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
      // It opens the bundle that the first server believes to be whole.
      await other.listRunning(ENDPOINT.id);
      const finish = (job: Job): ReturnType<typeof transitions.finish> =>
        transitions.finish(job, { workerId: 'w' }, { output: '1', error: null }, NOW + 1);
      await one.changeAll(taken.map(({ job: { seq } }) => ({ endpointId: ENDPOINT.id, seq, next: finish })));
      for (const pid of await processes()) seen.add(pid);
    }
    assert.equal((await one.counts(ENDPOINT.id)).completed, number);
    assert.ok(seen.size <= 5, `${seen.size} connections were opened by a pool of 5`);
  });
});
