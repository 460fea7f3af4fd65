import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workerStartTimeoutMs } from './worker-start-timeout.ts';

test('a worker has seven minutes to be ready, or what its environment says in seconds', () => {
  assert.equal(workerStartTimeoutMs({}), 420_000);
  assert.equal(workerStartTimeoutMs({ RUNPOD_INIT_TIMEOUT: '90' }), 90_000);
  assert.equal(workerStartTimeoutMs({ RUNPOD_INIT_TIMEOUT: '0.5' }), 500);
  for (const wrong of ['', '0', '-1', 'long', 'Infinity'])
    assert.equal(workerStartTimeoutMs({ RUNPOD_INIT_TIMEOUT: wrong }), 420_000, wrong);
});
