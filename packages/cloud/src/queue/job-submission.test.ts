import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { clamp, newJob, retentionOf } from './job-submission.ts';
import type { EndpointQueueSettings } from './job-submission.ts';
import { EXECUTION_TIMEOUT_MS, JOB_RETENTION_MS, JOB_TTL_MS, SYNC_WAIT_MS } from '../domain/limits.ts';

const NOW = 1_800_000_000_000;
const MINUTE = 60_000;
const endpoint: EndpointQueueSettings = {
  id: 'e',
  accountId: 'owner',
  executionTimeout: 600_000,
  jobTtl: 86_400_000,
  retention: null,
  maxRetries: 2,
};

describe('a new job', () => {
  test('is queued with the settings of the endpoint', () => {
    const { job, payloads } = newJob(endpoint, 'a', '{"input":1.0}', {}, 77, NOW);
    assert.deepEqual(payloads, { request: '{"input":1.0}', output: null, error: null });
    assert.deepEqual(
      [job.status, job.accountId, job.seq, job.position, job.lowPriority],
      ['IN_QUEUE', 'a', 77, 77, false],
    );
    assert.deepEqual(
      [job.executionTimeout, job.ttl, job.ttlAt, job.dueAt, job.retriesLeft],
      [600_000, 86_400_000, NOW + 86_400_000, NOW + 86_400_000, 2],
    );
    assert.deepEqual(
      [job.attempt, job.lease, job.workerId, job.takenAt, job.endedAt, job.webhook],
      [0, null, null, null, null, null],
    );
    assert.ok(!job.id.startsWith('sync-'));
  });

  test('has the settings of the request instead', () => {
    const { job } = newJob(
      endpoint,
      'a',
      '{}',
      {
        executionTimeout: 5_000,
        ttl: 10_000,
        lowPriority: true,
        retention: 0,
        webhook: 'https://example.com',
        sync: { wait: 1, waitGiven: true },
      },
      1,
      NOW,
    );
    assert.deepEqual(
      [job.executionTimeout, job.ttlAt, job.lowPriority, job.retention, job.webhook],
      [5_000, NOW + 10_000, true, 0, 'https://example.com'],
    );
    assert.ok(job.id.startsWith('sync-'));
  });
});

test('an account keeps its jobs no longer than it may, and `run` as long as that', () => {
  assert.equal(retentionOf(endpoint, {}, 2 * MINUTE), 2 * MINUTE);
  assert.equal(retentionOf(endpoint, {}, 90 * MINUTE), 90 * MINUTE);
  assert.equal(retentionOf({ retention: 9 * MINUTE }, {}, 2 * MINUTE), 2 * MINUTE);
  assert.equal(retentionOf(endpoint, { retention: 9 * MINUTE }, 2 * MINUTE), 2 * MINUTE);
  assert.equal(retentionOf(endpoint, { retention: 7 }, 2 * MINUTE), 7);
  assert.equal(retentionOf(endpoint, { sync: { wait: 1, waitGiven: false } }, 90 * MINUTE), MINUTE);
});

test('a result is kept for the default retention, unless the endpoint or the request sets another', () => {
  const sync = (wait: number, waitGiven = true): Parameters<typeof retentionOf>[1] => ({
    sync: { wait, waitGiven },
  });
  assert.equal(retentionOf(endpoint, {}), 30 * MINUTE);
  assert.equal(retentionOf(endpoint, sync(SYNC_WAIT_MS.default, false)), MINUTE);
  assert.equal(retentionOf(endpoint, sync(1_000)), MINUTE);
  assert.equal(retentionOf(endpoint, sync(2 * MINUTE)), 2 * MINUTE);
  assert.equal(retentionOf(endpoint, sync(SYNC_WAIT_MS.maximum)), JOB_RETENTION_MS.longestRunsync);
  assert.equal(retentionOf({ retention: 7 }, sync(SYNC_WAIT_MS.maximum)), 7);
  assert.equal(retentionOf({ retention: 7 }, { retention: 9 }), 9);
});

test('the bounds are those of the API', () => {
  assert.deepEqual(
    [EXECUTION_TIMEOUT_MS, JOB_TTL_MS, SYNC_WAIT_MS],
    [
      { minimum: 5_000, maximum: 604_800_000 },
      { minimum: 10_000, maximum: 604_800_000 },
      { minimum: 1_000, maximum: 300_000, default: 90_000 },
    ],
  );
  assert.deepEqual(
    [clamp(-1, SYNC_WAIT_MS), clamp(5_000, SYNC_WAIT_MS), clamp(1e12, SYNC_WAIT_MS)],
    [1_000, 5_000, 300_000],
  );
});
