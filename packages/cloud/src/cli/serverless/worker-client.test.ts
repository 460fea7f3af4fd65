import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeCrashes } from '../../compute/workers/crash-backoff.ts';
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
async function wait(counts: readonly number[], ran: boolean): Promise<string> {
  const left = [...counts];
  const get = () => {
    const count = left.shift();
    return Promise.resolve(
      count === undefined
        ? { workers: [{ id: 'w1', status: 'IDLE', isStale: false }], summary: NONE, reason: null }
        : {
            workers: [],
            summary: NONE,
            reason:
              count === 0
                ? 'a worker is starting'
                : describeCrashes({ count, lastLine: 'no X', ran, lastAt: 0 }),
          },
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
  assert.match(await wait([0, 1, 2, 3, 4], true), /is deployed, but no worker is ready: workers end .*no X$/);
  assert.match(await wait([0, 1, 2, 3, 4], false), /no worker is ready: no worker can be started \(3 tries/);
  assert.equal(await wait([0, 1, 2, 0], true), 'ready');
  // The release before this one failed.
  assert.equal(await wait([7, 7, 0, 1], true), 'ready');
});
