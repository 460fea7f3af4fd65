import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiClient } from '../api-client.ts';
import type { EndpointView } from './endpoint-client.ts';
import { waitForWorker } from './worker-client.ts';

const endpoint: EndpointView = {
  id: 'e1',
  name: 'echo',
  type: 'QUEUE',
  image: 'local/echo:1',
  env: {},
  workers: { min: 1, max: 1 },
  requestUrls: {},
};
const NONE = { running: 0, idle: 0, initializing: 0, throttled: 0, unhealthy: 0, total: 0 };

/** Waits while the server answers these counts of failed starts, one after the other; the last is ready. */
async function wait(counts: readonly (number | undefined)[]): Promise<string> {
  const left = [...counts];
  const get = () => {
    return Promise.resolve(
      left.length === 0
        ? { workers: [{ id: 'w1', status: 'IDLE', isStale: false }], summary: NONE }
        : { workers: [], summary: NONE, reason: 'workers end: no X', failedStarts: left.shift() },
    );
  };
  const client = { get } as unknown as ApiClient;
  const pause = (): Promise<void> => Promise.resolve();
  return waitForWorker(client, endpoint, 1_000_000, pause, () => undefined).then(
    ({ ready }) => (ready ? 'ready' : 'not'),
    (error: Error) => error.message,
  );
}

test('a wait for a worker ends when starts fail again and again', async () => {
  assert.match(await wait([0, 1, 2, 3, 4]), /is deployed, but no worker is ready: workers end: no X$/);
  assert.equal(await wait([0, 1, 2, 0]), 'ready');
  // The release before this one failed.
  assert.equal(await wait([7, 7, 0, 1]), 'ready');
  // A server of an earlier version does not count them.
  assert.equal(await wait([undefined, undefined]), 'ready');
});
