import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { createMigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import type { MigratedDatabase } from '../../../../testing/src/migrated-database.ts';
import type { Job } from '../../domain/job-records.ts';
import * as transitions from '../../domain/job-transitions.ts';
import { newJob } from '../../queue/job-submission.ts';
import type { JobChangeRequest, JobChangeResult, JobStore } from '../job-store.ts';
import { numberParameters } from '../named-parameters.ts';
import { FINISH_HANDED_OUT } from './finish-handed-out.ts';
import { QUEUE_PLANNER_OPTIONS } from './open-database.ts';

const NOW = 1_800_000_000_000;
const HOUR = 3_600_000;
const ENDPOINT = {
  id: 'endpoint',
  accountId: 'one',
  executionTimeout: 0,
  jobTtl: 24 * HOUR,
  retention: null,
  maxRetries: 1,
};

describe('a job that this server handed out', () => {
  let postgres: MigratedDatabase;
  /** Two servers: each remembers what it handed out itself. */
  let here: JobStore;
  let elsewhere: JobStore;
  let number = 0;

  before(async () => {
    postgres = await createMigratedDatabase('postgres');
    here = postgres.database.jobs();
    elsewhere = postgres.database.jobs();
  });
  after(() => postgres.drop());

  async function taken(): Promise<Job> {
    number += 1;
    await here.submit(newJob(ENDPOINT, 'one', '{"input":1}', {}, number, NOW));
    const claims = [{ workerId: 'w', lease: `lease ${number}` }];
    const [first] = await here.take(
      ENDPOINT.id,
      transitions.takeRequest(() => claims, NOW),
    );
    assert.ok(first !== undefined);
    return first.job;
  }

  /** `seen` hears on which versions of the job the rule was asked. */
  function finish(job: Job, output = '"done"', seen: Job[] = []): JobChangeRequest {
    return {
      endpointId: job.endpointId,
      seq: job.seq,
      next: (found) => {
        seen.push(found);
        return transitions.finish(
          found,
          { workerId: 'w', lease: job.lease ?? '' },
          { output, error: null },
          NOW + 5,
        );
      },
    };
  }

  /** Another connection waits for a lock of this one. */
  async function untilBlocked(client: pg.Client): Promise<void> {
    for (;;) {
      const { rows } = await client.query(
        'select 1 from pg_locks where not granted and pg_backend_pid() = any (pg_blocking_pids(pid))',
      );
      if (rows.length > 0) return;
    }
  }

  async function only(request: JobChangeRequest): Promise<JobChangeResult | undefined> {
    const [result] = await here.changeAll([request]);
    return result;
  }

  test('ends without being read again', async () => {
    const job = await taken();
    const seen: Job[] = [];
    const result = await only(finish(job, '"done"', seen));
    assert.deepEqual(seen, [job]);
    assert.deepEqual([result?.changed, result?.before, result?.after.status], [true, job, 'COMPLETED']);
    const stored = await here.find(job.endpointId, job.seq);
    assert.deepEqual(stored?.job, result?.after);
    assert.deepEqual(stored?.payloads, { request: '{"input":1}', output: '"done"', error: null });
  });

  test('that another server renewed, or gave a new time to live, ends as it is there', async () => {
    for (const change of [
      (found: Job) => transitions.renewLease(found, { workerId: 'w' }, NOW + 3),
      (found: Job) => transitions.setTimeToLive(found, HOUR, NOW + 3),
      (found: Job) => transitions.drain(found, found, 1),
    ]) {
      const job = await taken();
      const other = await elsewhere.change(job.endpointId, job.seq, change);
      const seen: Job[] = [];
      const result = await only(finish(job, '"done"', seen));
      assert.deepEqual(seen, [job, other?.after]);
      assert.deepEqual(result?.before, other?.after);
      assert.deepEqual((await here.find(job.endpointId, job.seq))?.job, result?.after);
    }
  });

  test('that another server is about to renew waits for it, and ends as it is then', async () => {
    const job = await taken();
    const renewing = new pg.Client({ connectionString: postgres.testDatabase.url });
    await renewing.connect();
    try {
      await renewing.query('begin');
      await renewing.query('update jobs set due_at = due_at + 1 where seq = $1', [job.seq]);
      const ending = only(finish(job));
      await untilBlocked(renewing);
      await renewing.query('commit');
      const result = await ending;
      assert.deepEqual(result?.before, { ...job, dueAt: job.dueAt + 1 });
      assert.deepEqual((await here.find(job.endpointId, job.seq))?.job, result?.after);
    } finally {
      await renewing.end();
    }
  });

  test('of several with other ends, only the one that changed is read again', async () => {
    const before = await here.counts(ENDPOINT.id);
    const [one, other] = [await taken(), await taken()];
    await elsewhere.change(other.endpointId, other.seq, (found) =>
      transitions.renewLease(found, { workerId: 'w' }, NOW + 3),
    );
    const seen: Job[] = [];
    const results = await here.changeAll([finish(other, '2', seen), finish(one, '1', seen)]);
    assert.deepEqual(
      results.map((result) => [result?.after.seq, result?.after.status]),
      [
        [other.seq, 'COMPLETED'],
        [one.seq, 'COMPLETED'],
      ],
    );
    assert.deepEqual(
      seen.map(({ seq }) => seq),
      [other.seq, one.seq, other.seq],
    );
    assert.equal((await here.find(one.endpointId, one.seq))?.payloads.output, '1');
    assert.deepEqual(await here.counts(ENDPOINT.id), { ...before, completed: before.completed + 2 });
  });

  test('with a webhook of any characters is handed out with it', async () => {
    number += 1;
    const webhook = 'https://example.com/"\u001d\\?a=\u00e9';
    const submitted = newJob(ENDPOINT, 'one', '{"input":1}', { webhook }, number, NOW);
    await here.submit(submitted);
    const claims = [{ workerId: 'w', lease: `lease ${number}` }];
    const [first] = await here.take(
      ENDPOINT.id,
      transitions.takeRequest(() => claims, NOW),
    );
    assert.deepEqual(first?.job, transitions.take(submitted.job, 'w', `lease ${number}`, NOW).job);
  });

  test('is found at its place, by no index', async () => {
    const client = new pg.Client({
      connectionString: postgres.testDatabase.url,
      options: QUEUE_PLANNER_OPTIONS,
    });
    await client.connect();
    try {
      const { text, names } = numberParameters(FINISH_HANDED_OUT, '$');
      await client.query(`prepare finish as ${text}`);
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(
        `explain execute finish (${names.map(() => 'null').join(', ')})`,
      );
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
      assert.match(plan, /Tid Scan on jobs/);
      assert.doesNotMatch(plan, /Index (Only )?Scan/);
    } finally {
      await client.end();
    }
  });

  test('that another server took back does not end', async () => {
    const job = await taken();
    const other = await elsewhere.change(job.endpointId, job.seq, (found) =>
      transitions.cancel(found, NOW + 3),
    );
    const result = await only(finish(job));
    assert.deepEqual([result?.changed, result?.after], [false, other?.after]);
  });

  test('ends once, where two results come together', async () => {
    const job = await taken();
    const results = await here.changeAll([finish(job, '1'), finish(job, '2')]);
    assert.deepEqual(
      results.map((result) => result?.changed),
      [true, false],
    );
    assert.equal((await here.find(job.endpointId, job.seq))?.payloads.output, '1');
  });

  test('with a result that cannot be stored keeps no other from its end', async () => {
    const [one, other] = [await taken(), await taken()];
    const results = await Promise.allSettled([
      here.changeAll([finish(one, '"\0"')]),
      here.changeAll([finish(other)]),
    ]);
    assert.deepEqual(
      results.map(({ status }) => status),
      ['rejected', 'fulfilled'],
    );
    const [, fulfilled] = results;
    assert.equal(fulfilled.status === 'fulfilled' && fulfilled.value[0]?.changed, true);
  });

  test('is counted as it would be under a lock', async () => {
    const before = await here.counts(ENDPOINT.id);
    const job = await taken();
    assert.equal((await here.counts(ENDPOINT.id)).inProgress, before.inProgress + 1);
    await only(finish(job));
    assert.deepEqual(await here.counts(ENDPOINT.id), { ...before, completed: before.completed + 1 });
  });
});
