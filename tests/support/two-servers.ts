import assert from 'node:assert/strict';
import { freshDatabase } from './databases.ts';
import type { TestDatabase } from './databases.ts';
import { runningPod } from './pods.ts';
import { startServer } from './server.ts';
import type { TestServer } from './server.ts';

const ENV = { BERTH_RATE_LIMITS: 'off' };

/** Two servers on one PostgreSQL, of which the first looks after pods and workers. */
export async function leaderAndOther(): Promise<{
  place: TestDatabase;
  leader: TestServer;
  other: TestServer;
}> {
  const place = await freshDatabase('postgres');
  const leader = await startServer(place, ENV);
  // It leads once a pod of it runs.
  const { id } = await runningPod(leader.client());
  assert.equal((await leader.client().call('DELETE', `/v2/pods/${id}`)).status, 204);
  return { place, leader, other: await startServer(place, ENV) };
}
