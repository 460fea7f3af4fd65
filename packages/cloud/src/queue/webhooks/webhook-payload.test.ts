import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { checkProperty } from '../../../../testing/src/property-testing.ts';
import type { Job } from '../../domain/job-records.ts';
import { newJob } from '../job-submission.ts';
import { webhookBody } from './webhook-payload.ts';

const NOW = 1_700_000_000_000;
const endpoint = {
  id: 'e1',
  accountId: 'owner',
  executionTimeout: 0,
  jobTtl: 1000,
  retention: null,
  maxRetries: 1,
};

function ended(change: Partial<Job>): Job {
  const { job } = newJob(endpoint, 'caller', '{}', { webhook: 'https://hooks.example/a?b="c"' }, 7, NOW);
  return { ...job, endedAt: NOW + 30, status: 'COMPLETED', ...change };
}

test('contains what /status shows, the input and the URL', () => {
  const job = ended({ takenAt: NOW + 10, workerId: 'w1', retries: 1 });
  assert.deepEqual(
    JSON.parse(
      webhookBody(job, {
        request: '{"input":{"a":1},"s3Config":{"accessSecret":"hidden"}}',
        output: '["x"]',
        error: null,
      }),
    ),
    {
      id: job.id,
      status: 'COMPLETED',
      delayTime: 10,
      executionTime: 20,
      workerId: 'w1',
      retries: 1,
      output: ['x'],
      input: { a: 1 },
      webhook: 'https://hooks.example/a?b="c"',
    },
  );
});

test('has times and a worker also where no worker took the job', () => {
  const job = ended({ status: 'CANCELLED' });
  assert.deepEqual(JSON.parse(webhookBody(job, { request: '{"input":1}', output: null, error: null })), {
    id: job.id,
    status: 'CANCELLED',
    delayTime: 0,
    executionTime: 0,
    workerId: '',
    input: 1,
    webhook: job.webhook,
  });
});

test('keeps payloads byte for byte', () => {
  const body = webhookBody(ended({ status: 'FAILED' }), {
    request: '{"id":"x","input": {"n": 12345678901234567890, "f":1.0} }',
    output: null,
    error: '"{\\"a\\":1e5}"',
  });
  assert.ok(body.includes('"input":{"n": 12345678901234567890, "f":1.0},'));
  assert.ok(body.includes('"error":"{\\"a\\":1e5}",'));
});

test('is JSON that contains every payload, whatever it is', async () => {
  await checkProperty(
    fc.property(fc.jsonValue(), fc.option(fc.jsonValue()), fc.option(fc.string()), (input, output, error) => {
      const texts = {
        request: JSON.stringify({ policy: {}, input }),
        output: output === null ? null : JSON.stringify(output),
        error: error === null ? null : JSON.stringify(error),
      };
      const body = JSON.parse(webhookBody(ended({}), texts)) as Record<string, unknown>;
      const again = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
      assert.deepEqual(body['input'], again(input));
      assert.deepEqual(body['output'], output === null ? undefined : again(output));
      assert.deepEqual(body['error'], error ?? undefined);
    }),
  );
});
