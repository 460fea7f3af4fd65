import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { createMigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import type { MigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import { newJob } from '../../queue/job-submission.ts';
import { toColumnArrays } from './column-arrays.ts';
import { QUEUE_POOL_OPTIONS } from './open-database.ts';
import { TAKE_FEW, TAKE_MANY, TAKE_FROM_ONE_QUEUE } from './take-jobs-sql.ts';

const NOW = 1_800_000_000_000;
const WANTED = 10;
/** Of the places that are looked at. */
const REACH = 21;
/** An index grows in height. */
const SOME_PAGES = 15;
const ENDPOINT = {
  id: 'endpoint',
  accountId: 'one',
  executionTimeout: 0,
  jobTtl: 86_400_000,
  retention: null,
  maxRetries: 1,
};

describe('what a take reads', () => {
  let postgres: MigratedDatabase;
  let client: pg.Client;
  let number = 0;

  before(async () => {
    postgres = await createMigratedDatabase('postgres');
    client = new pg.Client({ connectionString: postgres.testDatabase.url, options: QUEUE_POOL_OPTIONS });
    await client.connect();
  });
  after(async () => {
    await client.end();
    await postgres.drop();
  });

  /** Each job in a place of its own. */
  async function submit(count: number): Promise<void> {
    const jobs = postgres.database.jobs();
    for (let added = 0; added < count; added += 1)
      await jobs.submit(newJob(ENDPOINT, 'one', '{"input":1}', {}, ++number, NOW));
    await client.query('vacuum analyze job_places');
  }

  /** How many pages it touches; nothing of it is kept. */
  async function pagesOf(
    { name, text }: { name: string; text: string },
    last: readonly unknown[],
  ): Promise<number> {
    const claims = toColumnArrays(
      Array.from({ length: WANTED }, (_, index) => ['worker', `lease ${index}`]),
      ['worker_id', 'lease'],
    );
    const values = [ENDPOINT.id, WANTED, ...claims, NOW, NOW + 10_000, 'lane', ...last];
    const plan = `plan ${name}`;
    await client.query('begin');
    await client.query(`prepare "${plan}" as ${text}`);
    const {
      rows: [row],
    } = await client.query<{
      'QUERY PLAN': [
        { Plan: { 'Shared Hit Blocks': number; 'Shared Read Blocks': number; 'Actual Rows': number } },
      ];
    }>(
      `explain (analyze, buffers, format json) execute "${plan}" (${values.map((value) => pg.escapeLiteral(String(value))).join(', ')})`,
    );
    await client.query('rollback');
    await client.query(`deallocate "${plan}"`);
    const read = row?.['QUERY PLAN'][0].Plan;
    assert.equal(read?.['Actual Rows'], WANTED, 'it took all that it wanted');
    return read['Shared Hit Blocks'] + read['Shared Read Blocks'];
  }

  test('does not grow with what waits', async () => {
    const statements = [
      [TAKE_FROM_ONE_QUEUE, [REACH]],
      [TAKE_MANY, ['', WANTED]],
      [TAKE_FEW, ['', WANTED]],
    ] as const;
    await submit(50);
    const few: number[] = [];
    for (const [statement, last] of statements) few.push(await pagesOf(statement, last));
    await submit(950);
    for (const [index, [statement, last]] of statements.entries()) {
      const many = await pagesOf(statement, last);
      assert.ok(
        many <= (few[index] ?? 0) + SOME_PAGES,
        `${statement.name}: ${many} pages with 1,000 places, ${few[index]} with 50`,
      );
    }
  });
});
