import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestDatabase } from '../../../../testing/src/test-database.ts';
import { newJob } from '../../queue/job-submission.ts';
import type { JobOptions } from '../../queue/job-submission.ts';
import * as transitions from '../../domain/job-transitions.ts';
import { migrate } from './migrate.ts';
import { openDatabase } from '../open-store.ts';
import { migrations } from './migrations.ts';
import { insert, oldJobRow } from './old-job-rows.fixture.ts';
import { queueSettings } from '../queue-settings.fixture.ts';

const BEFORE = 14;
const NOW = 1_800_000_000_000;

test('jobs that waited before they could share a place wait on, in their order', async () => {
  const place = await createTestDatabase('postgres', { empty: true });
  const database = await openDatabase({
    poolSize: 2,
    onError: () => undefined,
    database: place.url,
    data: place.data,
  });
  try {
    await migrate(database, migrations.slice(0, BEFORE));
    const made = (seq: number, terms: JobOptions = {}): ReturnType<typeof newJob> =>
      newJob(queueSettings(), 'one', `{"input": ${seq}}`, terms, seq, NOW);
    const jobs = [
      made(3),
      made(1, { webhook: 'https://example.com/\u001e"' }),
      made(2, { lowPriority: true, executionTimeout: 5_000 }),
    ];
    await database.write(function* () {
      for (const { job, payloads } of jobs) {
        yield* insert('jobs', { ...oldJobRow({ job, payloads }), idempotency_key: null, body_hash: null });
        yield* insert('job_waiting', {
          endpoint_id: job.endpointId,
          low_priority: job.lowPriority ? 1 : 0,
          account_id: job.accountId,
          position: job.position,
          seq: job.seq,
          queued_at: job.queuedAt,
        });
      }
    });

    assert.equal(await migrate(database), migrations.length - BEFORE);
    const store = database.jobs();
    const taken = await store.take(
      'e',
      transitions.takeRequest(() => ['a', 'b', 'c', 'd'].map((lease) => ({ workerId: 'w', lease })), NOW + 5),
    );
    const [third, first, second] = jobs as [(typeof jobs)[0], (typeof jobs)[0], (typeof jobs)[0]];
    assert.deepEqual(
      taken,
      [first, third, second].map(({ job, payloads }, index) => ({
        job: transitions.take(job, 'w', 'abc'.charAt(index), NOW + 5).job,
        request: payloads.request,
      })),
    );
  } finally {
    await database.close();
    await place.drop();
  }
});
