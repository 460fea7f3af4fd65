import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { createMigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import type { MigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import { newJob } from '../../queue/job-submission.ts';
import { numberedValues, numberParameters } from '../named-parameters.ts';
import { QUEUE_PLANNER_OPTIONS } from './open-database.ts';
import { TAKE_JOBS } from './take.ts';

const NOW = 1_800_000_000_000;
const WANTED = 10;
/**
 * Indexes grow in height, and pages with rows are full: for each job one more page where its request is found, where
 * its new row goes, and for each new entry in the indexes that the row is then in.
 */
const SOME_PAGES = 5 * WANTED;
const INDEXES = ['jobs_waiting', 'job_requests_pkey'];
const ENDPOINT = {
  id: 'endpoint',
  accountId: 'one',
  executionTimeout: 0,
  jobTtl: 86_400_000,
  retention: null,
  maxRetries: 1,
};

interface Plan {
  Plans?: Plan[];
  'Index Name'?: string;
  'Shared Hit Blocks': number;
  'Shared Read Blocks': number;
  'Actual Rows': number;
}

describe('what a take reads', () => {
  let postgres: MigratedDatabase;
  let client: pg.Client;
  let number = 0;

  before(async () => {
    postgres = await createMigratedDatabase('postgres');
    client = new pg.Client({
      connectionString: postgres.testDatabase.url,
      options: QUEUE_PLANNER_OPTIONS,
    });
    await client.connect();
  });
  after(async () => {
    await client.end();
    await postgres.drop();
  });

  async function submit(count: number): Promise<void> {
    const jobs = postgres.database.jobs();
    await Promise.all(
      Array.from({ length: count }, () =>
        jobs.submit(newJob(ENDPOINT, 'one', '{"input":1}', {}, ++number, NOW)),
      ),
    );
    await client.query('vacuum analyze jobs');
  }

  /** How it is done; nothing of it is kept. */
  async function planOfTake(): Promise<Plan> {
    const { text, names } = numberParameters(TAKE_JOBS, '$');
    const claims = Array.from({ length: WANTED }, (_, index) => `"${index}"`).join(',');
    const values = numberedValues<string | number>(names, {
      endpoint_id: ENDPOINT.id,
      wanted: WANTED,
      served_last: '',
      worker_ids: `{${claims}}`,
      leases: `{${claims}}`,
      taken_at: NOW,
      lease_check_at: NOW + 10_000,
      writer: 'writer',
    });
    await client.query('begin');
    await client.query(`prepare take as ${text}`);
    const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
      'explain (analyze, buffers, format json) execute take ' +
        `(${values.map((value) => pg.escapeLiteral(String(value))).join(', ')})`,
    );
    await client.query('rollback');
    await client.query('deallocate take');
    const plan = rows[0]?.['QUERY PLAN'][0].Plan;
    assert.equal(plan?.['Actual Rows'], WANTED, 'it took all that it wanted');
    return plan;
  }

  /** How many pages it touches. */
  async function pagesOfTake(): Promise<number> {
    const plan = await planOfTake();
    return plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
  }

  function indexesOf({ Plans = [], 'Index Name': name }: Plan): string[] {
    return [...(name === undefined ? [] : [name]), ...Plans.flatMap(indexesOf)];
  }

  test('does not grow with what waits', async () => {
    await submit(50);
    const few = await pagesOfTake();
    await submit(950);
    const many = await pagesOfTake();
    assert.ok(many <= few + SOME_PAGES, `${many} pages with 1,000 waiting jobs, ${few} with 50`);
  });

  test('is found by the order of takes and at its place, and by no index that holds ended jobs too', async () => {
    await submit(1_000);
    // As while jobs are taken and end: many pages have changed since the last vacuum.
    await client.query('update jobs set retries = retries');
    await client.query('analyze jobs');
    assert.deepEqual(new Set(indexesOf(await planOfTake())), new Set(INDEXES));
  });
});
