import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestDatabase } from '../../../../testing/src/test-database.ts';
import { newJob } from '../../queue/job-submission.ts';
import * as transitions from '../../domain/job-transitions.ts';
import { migrate } from './migrate.ts';
import { openDatabase } from '../open-store.ts';
import { execute, sql } from '../sql.ts';
import { migrations } from './migrations.ts';
import { queueSettings } from '../queue-settings.fixture.ts';

const BEFORE = 15;
const NOW = 1_800_000_000_000;

test('a job that a worker has since before ends could be noted is still in its hands', async () => {
  const place = await createTestDatabase('sqlite');
  const database = await openDatabase({
    poolSize: 2,
    onError: () => undefined,
    database: place.url,
    data: place.data,
  });
  try {
    await migrate(database, migrations.slice(0, BEFORE));
    const { job, payloads } = newJob(
      queueSettings(),
      'one',
      '{"input":"é\\n\\"1.0"}',
      { webhook: 'https://example.com/"' },
      7,
      NOW,
    );
    const { job: held } = transitions.take(job, 'w', 'the lease', NOW + 5);
    const note = JSON.stringify({ held, request: payloads.request });
    await database.write(() => execute(sql`insert into job_notes (seq, note) values (${held.seq}, ${note})`));

    assert.equal(await migrate(database), migrations.length - BEFORE);
    const store = database.jobs();
    assert.deepEqual(await store.listRunning(), [held]);
    assert.deepEqual((await store.find('e', 7))?.payloads, {
      request: payloads.request,
      output: null,
      error: null,
    });
  } finally {
    await database.close();
    await place.drop();
  }
});
