import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import {
  podAction,
  createPod,
  waitForPodStatus,
  getPod,
  createRunningPod,
  signalProcesses,
} from '../packages/testing/src/pod-client.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { startLeaderAndFollower } from '../packages/testing/src/two-servers-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

const ENV = { BERTH_RATE_LIMITS: 'off' };

describe('billing with two servers on one database', () => {
  let place: TestDatabase;
  let leader: ServerProcess;
  let other: ServerProcess;
  before(async () => {
    ({ place, leader, other } = await startLeaderAndFollower());
  });
  after(async () => {
    await other.stop();
    await place.drop();
  });
  const billed = async (server: ServerProcess, id: string): Promise<number> => {
    const { body } = await server
      .client()
      .call<{ timeBilledMs: number }[]>('GET', `/v1/billing/pods?grouping=podId&bucketSize=year&podId=${id}`);
    return body.reduce((sum, { timeBilledMs }) => sum + timeBilledMs, 0);
  };

  test('a run is recorded once, and both servers report the same', async () => {
    const { id, startedAt } = await createRunningPod(other.client());
    await waitFor('two seconds are counted', async () => (await billed(leader, id)) >= 2_000);
    await Promise.all([leader, other].map((server) => podAction(server.client(), id, 'stop')));
    await waitForPodStatus(other.client(), id, 'EXITED');
    const ended = Date.now();
    const time = await billed(leader, id);
    assert.equal(await billed(other, id), time);
    assert.ok(Math.abs(time - (ended - Date.parse(startedAt ?? ''))) < 3_000 && time >= 1_000, `${time} ms`);
    assert.equal((await other.client().call('DELETE', `/v2/pods/${id}`)).status, 204);
    assert.equal(await billed(leader, id), time);
  });

  test('a run that ends between two leaders is billed to its end', async () => {
    const runs = (await createRunningPod(leader.client())).id;
    const ends = (await createPod(leader.client(), { cmd: ['sh', '-c', 'exec sleep 1000'] })).body.id;
    const { startedAt } = await waitForPodStatus(leader.client(), ends, 'RUNNING');
    // The process engine knows what was there when it began to look.
    await other.stop();
    other = await startServerProcess(place, ENV);
    await leader.kill();
    signalProcesses(ends, 'SIGKILL');
    const ended = Date.now();
    await waitForPodStatus(other.client(), ends, 'ERROR');
    const off = (await billed(other, ends)) - (ended - Date.parse(startedAt ?? ''));
    assert.ok(Math.abs(off) < 1_000, `${off} ms off`);
    const asked = Date.now();
    const still =
      (await billed(other, runs)) -
      (asked - Date.parse((await getPod(other.client(), runs)).startedAt ?? ''));
    assert.ok(Math.abs(still) < 1_500, `${still} ms off`);
    for (const id of [runs, ends])
      assert.equal((await other.client().call('DELETE', `/v2/pods/${id}`)).status, 204);
  });
});
