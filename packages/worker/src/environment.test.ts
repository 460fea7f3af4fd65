import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readEnvironment } from './environment.ts';

const env = { RUNPOD_WEBHOOK_GET_JOB: 'http://127.0.0.1:9/job-take/$ID?a=1', RUNPOD_WEBHOOK_POST_OUTPUT: 'http://127.0.0.1:9/job-done/$ID?a=1' };

test('pings are never further apart than an hour, nor than a timer can wait', () => {
  for (const text of ['3600001', '3000000000', '1e300']) assert.equal(readEnvironment({ ...env, RUNPOD_PING_INTERVAL: text }).pingMs, 3_600_000);
});

test('a key that cannot be sent is named at once', () => {
  assert.equal(readEnvironment({ ...env, RUNPOD_AI_API_KEY: 'a key' }).apiKey, 'a key');
  for (const key of ['key\n', 'key\u2013']) assert.throws(() => readEnvironment({ ...env, RUNPOD_AI_API_KEY: key }), /RUNPOD_AI_API_KEY has a character/);
});
