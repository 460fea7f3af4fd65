import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestDatabase } from '../../../../testing/src/test-database.ts';
import * as transitions from '../../domain/job-transitions.ts';
import type { Job, JobWithPayloads } from '../../domain/job-records.ts';
import { openDatabase } from '../open-store.ts';
import type { Row } from '../sql.ts';
import { migrate } from './migrate.ts';
import { migrations } from './migrations.ts';
import { ended, insert, oldJobRow, oldLeaseRow, submitted, taken } from './old-job-rows.fixture.ts';
import { NOW } from '../queue-settings.fixture.ts';

const BEFORE = 17;
const place = (jobs: readonly Job[]): Row => {
  const [{ endpointId, accountId, lowPriority, position, seq, queuedAt }] = jobs as [Job];
  return {
    endpoint_id: endpointId,
    low_priority: lowPriority ? 1 : 0,
    account_id: accountId,
    position,
    seq,
    queued_at: queuedAt,
    size: jobs.length,
    seqs: jobs.length === 1 ? null : JSON.stringify(jobs.map((job) => job.seq)),
  };
};
/** A job that went straight to a worker, and what its end changed of it. */
const note = (held: JobWithPayloads, end?: JobWithPayloads): Row => ({
  seq: held.job.seq,
  held: JSON.stringify(held.job),
  request: held.payloads.request,
  ended:
    end === undefined
      ? null
      : JSON.stringify([
          Object.fromEntries(
            Object.entries(end.job).filter(([name, value]) => value !== held.job[name as keyof Job]),
          ),
          end.payloads.output,
          end.payloads.error,
        ]),
});

test('a data directory of before opens whole: jobs that wait in shared places, are held, noted, and have ended', async () => {
  const empty = await createTestDatabase('sqlite');
  const open = { poolSize: 2, onError: assert.fail, database: empty.url, data: empty.data };
  const waiting = [1, 2, 3].map((seq) => submitted(seq, { webhook: 'https://example.com/"' }));
  const low = submitted(4, { lowPriority: true });
  const held = taken(submitted(5));
  const done = ended(taken(submitted(6)), '{"x":1.0}', null);
  const notedHeld = taken(submitted(7, { webhook: 'https://example.com/"' }));
  const notedDone = ended(taken(submitted(8)), '"é\\n"', null);
  const notedFailed = ended(taken(submitted(9)), null, '"no"');
  const database = await openDatabase(open);
  try {
    await migrate(database, migrations.slice(0, BEFORE));
    await database.write(function* () {
      for (const job of [...waiting, low, held, done]) yield* insert('jobs', oldJobRow(job));
      yield* insert('job_waiting', place(waiting.map(({ job }) => job)));
      yield* insert('job_waiting', place([low.job]));
      yield* insert('job_leases', oldLeaseRow(held.job));
      yield* insert('job_notes', note(notedHeld));
      yield* insert('job_notes', note(taken(submitted(8)), notedDone));
      yield* insert('job_notes', note(taken(submitted(9)), notedFailed));
      yield* insert('job_counts', {
        endpoint_id: 'e',
        lane: 'sqlite',
        queued: 4,
        running: 1,
        completed: 1,
        failed: 0,
        retried: 0,
      });
    });
  } finally {
    await database.close();
  }

  // As a server that starts does.
  const again = await openDatabase(open);
  try {
    assert.equal(await migrate(again), migrations.length - BEFORE);
    const store = again.jobs();
    for (const whole of [...waiting, low, held, done, notedHeld, notedDone, notedFailed])
      assert.deepEqual(await store.find('e', whole.job.seq), whole);
    assert.deepEqual(await store.counts('e'), {
      inQueue: 4,
      inProgress: 2,
      completed: 2,
      failed: 1,
      retried: 0,
    });
    assert.deepEqual(
      (await store.listRunning('e')).map(({ seq }) => seq),
      [5, 7],
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
    const finished = await store.change('e', 7, (job) =>
      transitions.finish(job, { workerId: 'w', lease: 'lease 7' }, { output: '1', error: null }, NOW + 30),
    );
    assert.equal(finished?.after.status, 'COMPLETED');
    assert.deepEqual(
      (await store.listDue(NOW + 10_005, 10)).map(({ seq }) => seq),
      [5],
    );
  } finally {
    await again.close();
    await empty.drop();
  }
});
