import assert from 'node:assert/strict';
import { createTestDatabase } from './test-database.ts';
import type { TestDatabase } from './test-database.ts';
import { createRunningPod } from './pod-client.ts';
import { startServerProcess } from './server-process.ts';
import type { ServerProcess } from './server-process.ts';

const ENV = { BERTH_RATE_LIMITS: 'off' };

/** Two servers on one PostgreSQL; the first one reconciles pods and workers. */
export async function startLeaderAndFollower(): Promise<{
  place: TestDatabase;
  leader: ServerProcess;
  other: ServerProcess;
}> {
  const place = await createTestDatabase('postgres');
  const leader = await startServerProcess(place, ENV);
  // It leads once a pod of it runs.
  const { id } = await createRunningPod(leader.client());
  assert.equal((await leader.client().call('DELETE', `/v2/pods/${id}`)).status, 204);
  return { place, leader, other: await startServerProcess(place, ENV) };
}
