import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readEnvironment } from './worker-environment.ts';

const env = {
  RUNPOD_WEBHOOK_GET_JOB: 'http://127.0.0.1:9/job-take/$ID?a=1',
  RUNPOD_WEBHOOK_POST_OUTPUT: 'http://127.0.0.1:9/job-done/$ID?a=1',
};

test('the ping interval is the one that the platform sets, clamped to sensible limits', () => {
  const interval = (text: string | undefined): number =>
    readEnvironment({ ...env, RUNPOD_PING_INTERVAL: text }).pingMs;
  assert.deepEqual(
    [undefined, '4000', '1', '0', 'soon', '-5', '3600001', '1e300'].map(interval),
    [10_000, 4_000, 100, 10_000, 10_000, 10_000, 3_600_000, 3_600_000],
  );
});

test('a worker without an id gets one', () => {
  assert.match(readEnvironment(env).workerId, /^[0-9a-f-]{36}$/);
  assert.equal(readEnvironment({ ...env, RUNPOD_POD_ID: 'pod' }).workerId, 'pod');
});

test('an error names a key that is not valid in a header', () => {
  assert.equal(readEnvironment({ ...env, RUNPOD_AI_API_KEY: 'a key' }).apiKey, 'a key');
  for (const key of ['key\n', 'key\u2013'])
    assert.throws(
      () => readEnvironment({ ...env, RUNPOD_AI_API_KEY: key }),
      /RUNPOD_AI_API_KEY has a character/,
    );
});
