import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import {
  podAction,
  createPod,
  waitForPodStatus,
  containerLogLines,
  getPod,
  processesOfInstance,
  createRunningPod,
  signalProcesses,
} from '../packages/testing/src/pod-client.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { parseLogLines } from '../packages/testing/src/server-fixture.ts';
import { startLeaderAndFollower } from '../packages/testing/src/two-servers-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

describe('pods with two servers on one database', () => {
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

  test('a request to one server is carried out by the other, and its caller sees the result', async () => {
    const { id } = await createRunningPod(other.client());
    assert.equal(processesOfInstance(id).length, 1);
    const stopped = await podAction(other.client(), id, 'stop');
    assert.deepEqual([stopped.status, stopped.body.status], [200, 'EXITED']);
    assert.equal((await podAction(leader.client(), id, 'start')).status, 200);
    await waitForPodStatus(other.client(), id, 'RUNNING');
    assert.equal((await other.client().call('DELETE', `/v2/pods/${id}`)).status, 204);
    assert.deepEqual(processesOfInstance(id), []);
  });

  test('when the leader is killed, the other server adopts its pods, also those it never heard of', async () => {
    // Its engine has looked around before any of these was there.
    assert.equal(
      (await other.client().call('GET', '/v2/catalog/gpus?include=AVAILABILITY&product=POD')).status,
      200,
    );
    const count = ['sh', '-c', 'i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done'];
    const { id, startedAt } = await createRunningPod(leader.client(), { cmd: count });
    const pids = processesOfInstance(id);
    const anew = await createRunningPod(leader.client());
    assert.equal((await podAction(leader.client(), anew.id, 'restart')).status, 200);
    const { startedAt: secondStart } = await waitFor('it runs anew', async () => {
      const found = await waitForPodStatus(leader.client(), anew.id, 'RUNNING');
      return found.startedAt !== anew.startedAt && found;
    });
    const ending = (
      await createPod(leader.client(), {
        cmd: ['sh', '-c', 'while test ! -e go; do sleep 0.05; done; exit 5'],
      })
    ).body.id;
    await waitForPodStatus(leader.client(), ending, 'RUNNING');
    await leader.kill();
    signalProcesses(ending, 'SIGTERM');
    await waitForPodStatus(other.client(), ending, 'ERROR');
    const found = await getPod(other.client(), id);
    assert.deepEqual(
      [found.status, found.startedAt, processesOfInstance(id).some((pid) => pids.includes(pid))],
      ['RUNNING', startedAt, true],
    );
    const lines = await waitFor('it writes on', async () => {
      const written = await containerLogLines(other.client(), id);
      return written.length > 40 && written;
    });
    assert.deepEqual(
      lines,
      lines.map((_, index) => String(index + 1)),
    );
    assert.deepEqual(
      [(await getPod(other.client(), anew.id)).status, (await getPod(other.client(), anew.id)).startedAt],
      ['RUNNING', secondStart],
    );
    await waitFor(
      'the other one leads',
      async () =>
        (await podAction(other.client(), id, 'stop')).body.status === 'EXITED' ||
        (await getPod(other.client(), id)).status === 'EXITED',
    );
    assert.deepEqual(processesOfInstance(id), []);
    for (const one of [id, ending, anew.id])
      assert.equal((await other.client().call('DELETE', `/v2/pods/${one}`)).status, 204);
    assert.deepEqual(
      parseLogLines(other).filter(({ level }) => level === 'error'),
      [],
    );
  });
});
