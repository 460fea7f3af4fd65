import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { newJob } from '../../queue/job-submission.ts';
import * as transitions from '../../domain/job-transitions.ts';
import type { Job, JobWithPayloads } from '../../domain/job-records.ts';
import { jobSummaryJson, jobRequestJson, jobStatusJson } from './job-json.ts';

const NOW = 1_800_000_000_000;
const REQUEST = '{"policy":{"ttl":1},"input":{"n":1.0},"s3Config":{"accessSecret":"hush"}}';
const endpoint = {
  id: 'e',
  accountId: 'a',
  executionTimeout: 0,
  jobTtl: 86_400_000,
  retention: null,
  maxRetries: 1,
};
const { job: queued } = newJob(endpoint, 'a', REQUEST, {}, 7, NOW);
const running = transitions.take(queued, 'w"1', 'l', NOW + 40).job;
const whole = (job: Job, output: string | null = null, error: string | null = null): JobWithPayloads => ({
  job,
  payloads: { request: REQUEST, output, error },
});
const ended = (status: 'COMPLETED' | 'FAILED' | 'CANCELLED'): Job =>
  (status === 'CANCELLED'
    ? transitions.cancel(running, NOW + 100)?.job
    : transitions.finish(
        running,
        { workerId: 'w"1' },
        { output: null, error: status === 'FAILED' ? '1' : null },
        NOW + 100,
      )?.job) as Job;

describe('the status of a job', () => {
  test('that waited for the start of its worker has the phases of that, as far as they are over', () => {
    const phases = {
      scheduledAt: NOW,
      imageReadyAt: NOW + 10,
      startedAt: null,
      connectedAt: null,
      firstJobAt: null,
    };
    const shown = JSON.parse(jobStatusJson(whole(running), undefined, phases)) as { phases: unknown };
    assert.deepEqual(shown.phases, {
      scheduledAt: '2027-01-15T08:00:00.000Z',
      imageReadyAt: '2027-01-15T08:00:00.010Z',
      startedAt: null,
      connectedAt: null,
      firstJobAt: null,
    });
    assert.equal('phases' in (JSON.parse(jobStatusJson(whole(running))) as object), false);
  });

  test('that waits has its input and the reason', () => {
    assert.equal(
      jobStatusJson(whole(queued), 'no "worker"'),
      `{"id":"${queued.id}","status":"IN_QUEUE","input":{"n":1.0},"reason":"no \\"worker\\""}`,
    );
  });

  test('that runs has its worker, its delay and its progress', () => {
    assert.equal(
      jobStatusJson(whole(running, '{"half":1.50}')),
      `{"id":"${queued.id}","status":"IN_PROGRESS","delayTime":40,"workerId":"w\\"1","output":{"half":1.50},"input":{"n":1.0}}`,
    );
  });

  test('that has ended has its times and what came of it, and no input', () => {
    assert.equal(
      jobStatusJson(whole(ended('COMPLETED'), '1.0')),
      `{"id":"${queued.id}","status":"COMPLETED","delayTime":40,"executionTime":60,"workerId":"w\\"1","output":1.0}`,
    );
    assert.equal(
      jobStatusJson(whole(ended('FAILED'), '[1]', '"no"')),
      `{"id":"${queued.id}","status":"FAILED","delayTime":40,"executionTime":60,"workerId":"w\\"1","output":[1],"error":"no"}`,
    );
    const cancelled = transitions.cancel(queued, NOW + 9)?.job as Job;
    assert.equal(
      jobStatusJson(whole(cancelled)),
      `{"id":"${queued.id}","status":"CANCELLED","delayTime":0,"executionTime":0,"workerId":""}`,
    );
  });

  test('that was retried has the number of retries', () => {
    const again = transitions.loseWorker(running, { workerId: 'w"1' }, 'gone', NOW + 50)?.job as Job;
    assert.match(jobStatusJson(whole(again)), /"retries":1,"input"/);
  });
});

test('a brief answer names the job and its state', () => {
  assert.equal(jobSummaryJson(queued), `{"id":"${queued.id}","status":"IN_QUEUE"}`);
});

test('the list of requests shows input and outcome, and no credentials', () => {
  const text = jobRequestJson(whole(ended('FAILED'), null, '"no"'));
  assert.deepEqual(JSON.parse(text), {
    id: queued.id,
    status: 'FAILED',
    createdAt: new Date(NOW).toISOString(),
    delayTime: 40,
    executionTime: 60,
    workerId: 'w"1',
    retries: 0,
    input: { n: 1 },
    error: 'no',
  });
  assert.ok(text.includes('"input":{"n":1.0}') && !text.includes('hush'));
});
