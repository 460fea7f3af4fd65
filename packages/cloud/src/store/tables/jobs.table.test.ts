import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newJob } from '../../queue/job-submission.ts';
import { insertedValues, NEW_JOB_COLUMNS, newJobValues } from './jobs.table.ts';
import { queueSettings } from '../queue-settings.fixture.ts';

const ENDPOINT = { ...queueSettings('endpoint-1', 'owner'), retention: 7_000, maxRetries: 3 };

test('the values of a new job are in the order of their columns, and what is left out is null', () => {
  const options = { lowPriority: true, webhook: 'https://example.com/', ttl: 50_000 };
  const { job } = newJob(ENDPOINT, 'account-1', '{"input":1}', options, 77, 1_800_000_000_000);
  const idempotency = { key: 'key-1', bodyHash: 'hash-1' };
  const values = newJobValues(job, idempotency);
  const row = Object.fromEntries(NEW_JOB_COLUMNS.map((column, index) => [column, values[index]]));
  assert.deepEqual({ ...insertedValues(job, idempotency), ...row }, insertedValues(job, idempotency));
  assert.equal(values.length, NEW_JOB_COLUMNS.length);
  const omitted = Object.entries(insertedValues(job, idempotency)).filter(([column]) => !(column in row));
  assert.deepEqual(
    omitted.map(([, value]) => value),
    [null, null, null, null],
  );
});
