import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { TestDatabase } from './support/databases.ts';
import {
  act,
  createPod,
  has,
  linesOf,
  pod,
  processesOf,
  runningPod,
  signalProcesses,
} from './support/pods.ts';
import type { TestServer } from './support/server.ts';
import { until } from './support/serverless.ts';
import { logLines } from './support/story.ts';
import { leaderAndOther } from './support/two-servers.ts';

describe('pods with two servers on one database', () => {
  let place: TestDatabase;
  let leader: TestServer;
  let other: TestServer;
  before(async () => {
    ({ place, leader, other } = await leaderAndOther());
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

  test('when the one that leads is killed, the other takes its pods up and goes on, also those that it never heard of', async () => {
    // Its engine has looked around before any of these was there.
    assert.equal(
      (await other.client().call('GET', '/v2/catalog/gpus?include=AVAILABILITY&product=POD')).status,
      200,
    );
    const count = ['sh', '-c', 'i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done'];
    const { id, startedAt } = await runningPod(leader.client(), { cmd: count });
    const pids = processesOf(id);
    const anew = await runningPod(leader.client());
    assert.equal((await act(leader.client(), anew.id, 'restart')).status, 200);
    const { startedAt: secondStart } = await until('it runs anew', async () => {
      const found = await has(leader.client(), anew.id, 'RUNNING');
      return found.startedAt !== anew.startedAt && found;
    });
    const ending = (
      await createPod(leader.client(), {
        cmd: ['sh', '-c', 'while test ! -e go; do sleep 0.05; done; exit 5'],
      })
    ).body.id;
    await has(leader.client(), ending, 'RUNNING');
    await leader.kill();
    signalProcesses(ending, 'SIGTERM');
    await has(other.client(), ending, 'ERROR');
    const found = await pod(other.client(), id);
    assert.deepEqual(
      [found.status, found.startedAt, processesOf(id).some((pid) => pids.includes(pid))],
      ['RUNNING', startedAt, true],
    );
    const lines = await until('it writes on', async () => {
      const written = await linesOf(other.client(), id);
      return written.length > 40 && written;
    });
    assert.deepEqual(
      lines,
      lines.map((_, index) => String(index + 1)),
    );
    assert.deepEqual(
      [(await pod(other.client(), anew.id)).status, (await pod(other.client(), anew.id)).startedAt],
      ['RUNNING', secondStart],
    );
    await until(
      'the other one leads',
      async () =>
        (await act(other.client(), id, 'stop')).body.status === 'EXITED' ||
        (await pod(other.client(), id)).status === 'EXITED',
    );
    assert.deepEqual(processesOf(id), []);
    for (const one of [id, ending, anew.id])
      assert.equal((await other.client().call('DELETE', `/v2/pods/${one}`)).status, 204);
    assert.deepEqual(
      logLines(other).filter(({ level }) => level === 'error'),
      [],
    );
  });
});
