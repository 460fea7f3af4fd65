import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { freshDatabase } from './support/databases.ts';
import type { TestDatabase } from './support/databases.ts';
import { act, createPod, has, pod, processesOf, runningPod } from './support/pods.ts';
import { startServer } from './support/server.ts';
import type { TestServer } from './support/server.ts';
import { until } from './support/serverless.ts';
import { logLines } from './support/story.ts';

const ENV = { BERTH_RATE_LIMITS: 'off' };

describe('pods with two servers on one database', () => {
  let place: TestDatabase;
  let leader: TestServer;
  let other: TestServer;
  before(async () => {
    place = await freshDatabase('postgres');
    leader = await startServer(place, ENV);
    // The first one leads once a pod of it runs.
    const { id } = await runningPod(leader.client());
    assert.equal((await leader.client().call('DELETE', `/v2/pods/${id}`)).status, 204);
    other = await startServer(place, ENV);
  });
  after(async () => {
    await other.stop();
    await place.drop();
  });

  test('what is asked of one is done by the other, and whoever asked sees it done', async () => {
    const { id } = await runningPod(other.client());
    assert.equal(processesOf(id).length, 1);
    const stopped = await act(other.client(), id, 'stop');
    assert.deepEqual([stopped.status, stopped.body.status], [200, 'EXITED']);
    assert.equal((await act(leader.client(), id, 'start')).status, 200);
    await has(other.client(), id, 'RUNNING');
    assert.equal((await other.client().call('DELETE', `/v2/pods/${id}`)).status, 204);
    assert.deepEqual(processesOf(id), []);
  });

  test('when the one that leads is killed, the other takes its pods up and goes on', async () => {
    const { id, startedAt } = await runningPod(leader.client());
    const pids = processesOf(id);
    const ending = (await createPod(leader.client(), { cmd: ['sh', '-c', 'while test ! -e go; do sleep 0.05; done; exit 5'] })).body.id;
    await has(leader.client(), ending, 'RUNNING');
    await other.stop();
    other = await startServer(place, ENV);
    await leader.kill();
    for (const pid of processesOf(ending)) process.kill(pid, 'SIGTERM');
    await has(other.client(), ending, 'ERROR');
    const found = await pod(other.client(), id);
    assert.deepEqual([found.status, found.startedAt, processesOf(id)], ['RUNNING', startedAt, pids]);
    await until('the other one leads', async () => (await act(other.client(), id, 'stop')).body.status === 'EXITED' || (await pod(other.client(), id)).status === 'EXITED');
    assert.deepEqual(processesOf(id), []);
    for (const one of [id, ending]) assert.equal((await other.client().call('DELETE', `/v2/pods/${one}`)).status, 204);
    assert.deepEqual(logLines(other).filter(({ level }) => level === 'error'), []);
  });
});
