import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestDatabase } from '../../../../testing/src/test-database.ts';
import * as transitions from '../../domain/job-transitions.ts';
import type { JobWithPayloads } from '../../domain/job-records.ts';
import { openDatabase } from '../open-store.ts';
import type { Row } from '../sql.ts';
import { migrate } from './migrate.ts';
import { migrations } from './migrations.ts';
import { ended, insert, oldJobRow, oldLeaseRow, submitted, taken } from './old-job-rows.fixture.ts';
import { NOW } from '../queue-settings.fixture.ts';

const BEFORE = 19;

/** Jobs that came together shared a row; `gone` of them had been taken. */
const place = (jobs: readonly JobWithPayloads[], gone: number): Row => {
  const [{ job }] = jobs as [JobWithPayloads];
  return {
    endpoint_id: job.endpointId,
    low_priority: job.lowPriority ? 1 : 0,
    account_id: job.accountId,
    position: job.position,
    seq: job.seq,
    queued_at: job.queuedAt,
    ttl_at: job.ttlAt,
    execution_timeout: job.executionTimeout,
    seqs: `{${jobs.map((one) => one.job.seq).join(',')}}`,
    gone,
    jobs: 'not read any more',
  };
};
/** What a take handed out was one row. */
const bundle = (jobs: readonly JobWithPayloads[]): Row => ({
  endpoint_id: 'e',
  id: jobs[0]?.job.lease ?? '',
  taken_at: NOW + 5,
  look_at: NOW + 5 + transitions.LEASE_MS,
  due_at: NOW + 5 + transitions.LEASE_MS,
  seqs: `{${jobs.map(({ job }) => job.seq).join(',')}}`,
  workers: `{${jobs.map(() => 'w').join(',')}}`,
  leases: `{${jobs.map(({ job }) => `"lease ${job.seq}"`).join(',')}}`,
});

test('a database of before opens whole: jobs that wait and are held in batches, have leases, and have ended', async () => {
  const empty = await createTestDatabase('postgres', { empty: true });
  const database = await openDatabase({
    poolSize: 3,
    onError: assert.fail,
    database: empty.url,
    data: empty.data,
  });
  try {
    await migrate(database, migrations.slice(0, BEFORE));
    const waiting = [1, 2, 3].map((seq) => submitted(seq, { webhook: 'https://example.com/"' }));
    const low = submitted(4, { lowPriority: true });
    const leased = taken(submitted(5));
    const done = ended(taken(submitted(6)), '{"x":1.0}', null);
    const bundled = [taken(submitted(7)), taken(submitted(8, { executionTimeout: 5_000 }))];
    const bundledDone = ended(taken(submitted(9)), null, '"no"');
    await database.write(function* () {
      const jobs = [...waiting, low, leased, done, ...bundled, bundledDone];
      for (const job of jobs) yield* insert('jobs', oldJobRow(job));
      yield* insert('job_places', place([taken(submitted(7)), ...waiting], 1));
      yield* insert('job_places', place([low], 0));
      yield* insert('job_leases', oldLeaseRow(leased.job));
      yield* insert('job_bundles', bundle([...bundled, bundledDone]));
    });

    assert.equal(await migrate(database), migrations.length - BEFORE);
    const store = database.jobs();
    for (const whole of [...waiting, low, leased, done, ...bundled, bundledDone])
      assert.deepEqual(await store.find('e', whole.job.seq), whole);
    assert.deepEqual(
      (await store.listRunning('e')).map(({ seq }) => seq),
      [5, 7, 8],
    );
    const key = await store.submit(submitted(10), { key: 'the key', bodyHash: 'the hash' });
    assert.deepEqual([key.created, key.job.seq, key.bodyHash], [false, 1, 'the hash']);
    const next = await store.take(
      'e',
      transitions.takeRequest(
        () => ['a', 'b', 'c', 'd', 'e'].map((lease) => ({ workerId: 'w', lease })),
        NOW + 9,
      ),
    );
    assert.deepEqual(
      next.map(({ job, request }) => [job.seq, request]),
      [...waiting, low].map(({ job, payloads }) => [job.seq, payloads.request]),
    );
    const finished = await store.change('e', 8, (job) =>
      transitions.finish(job, { workerId: 'w', lease: 'lease 8' }, { output: '1', error: null }, NOW + 30),
    );
    assert.equal(finished?.after.status, 'COMPLETED');
  } finally {
    await database.close();
    await empty.drop();
  }
});
