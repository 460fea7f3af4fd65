import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openTerminal } from '../../packages/testing/src/terminal-client.ts';
import type { TestDatabase } from '../../packages/testing/src/test-database.ts';
import { POD_HTTP_SERVER_SOURCE } from '../../packages/testing/src/pod-http-server.ts';
import {
  podAction,
  waitForPodStatus,
  getPod,
  createRunningPod,
} from '../../packages/testing/src/pod-client.ts';
import type { ServerProcess } from '../../packages/testing/src/server-process.ts';
import { parseLogLines } from '../../packages/testing/src/server-fixture.ts';
import { startLeaderAndFollower } from '../../packages/testing/src/two-servers-fixture.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';

describe('access to pods through a server that does not lead', () => {
  let place: TestDatabase;
  let leader: ServerProcess;
  let other: ServerProcess;
  before(async () => {
    ({ place, leader, other } = await startLeaderAndFollower());
    // It has looked at the machine before the pods are there.
    assert.equal(
      (await other.client().call('GET', '/v2/catalog/gpus?include=AVAILABILITY&product=POD')).status,
      200,
    );
  });
  after(async () => {
    for (const server of [other, leader]) {
      assert.deepEqual(
        parseLogLines(server).filter(({ level }) => level === 'error'),
        [],
      );
      await server.stop();
    }
    await place.drop();
  });

  test('its port, its terminal and its use are there, also after it was started anew', async () => {
    const { id } = await createRunningPod(leader.client(), {
      cmd: ['node', '-e', POD_HTTP_SERVER_SOURCE],
      env: { LISTEN_AS: 'BERTH_PORT_8000' },
      ports: ['8000/http', '22/tcp'],
    });
    const reached = (server: ServerProcess): Promise<unknown> =>
      waitFor('it is reached', async () => {
        const answer = await fetch(`${server.url}/proxy/${id}-8000/`);
        return answer.status === 200
          ? ((await answer.json()) as { pod: string })
          : (await answer.body?.cancel(), undefined);
      });
    const shows = async (server: ServerProcess): Promise<void> => {
      assert.partialDeepStrictEqual(await reached(server), { pod: id });
      const terminal = await openTerminal(
        `${server.url.replace(/^http/, 'ws')}/v2/pods/${id}/terminal?cmd=sh&cmd=-c&cmd=${encodeURIComponent('echo $RUNPOD_POD_ID')}`,
        { authorization: `Bearer ${server.key}` },
      );
      assert.equal((await terminal.ended).exit?.exitCode, 0);
      assert.equal(terminal.stdout().toString(), `${id}\n`);
      const { runtime } = await getPod(server.client(), id);
      assert.ok(
        runtime !== null && runtime.memory.util >= 0 && runtime.ports.length === 2,
        JSON.stringify(runtime),
      );
    };
    await shows(other);
    await shows(leader);
    await podAction(other.client(), id, 'restart');
    await waitForPodStatus(other.client(), id, 'RUNNING');
    await shows(other);
    await podAction(other.client(), id, 'stop');
    assert.equal((await fetch(`${other.url}/proxy/${id}-8000/`)).status, 502);
    assert.equal((await fetch(`${leader.url}/proxy/${id}-8000/`)).status, 502);
    assert.equal((await leader.client().call('DELETE', `/v2/pods/${id}`)).status, 204);
    assert.equal((await fetch(`${other.url}/proxy/${id}-8000/`)).status, 404);
  });

  test('a terminal on one server closes when its key is revoked on the other', async () => {
    const { id } = await createRunningPod(leader.client(), { cmd: ['sleep', '1000'] });
    const made = (
      await other
        .client()
        .call<{ id: string; key: string }>('POST', '/v2/account/api-keys', { name: 'short', access: 'ALL' })
    ).body;
    const terminal = await openTerminal(
      `${leader.url.replace(/^http/, 'ws')}/v2/pods/${id}/terminal?cmd=cat`,
      { authorization: `Bearer ${made.key}` },
    );
    const before = performance.now();
    assert.equal((await other.client().call('DELETE', `/v2/account/api-keys/${made.id}`)).status, 204);
    assert.deepEqual(await terminal.ended, { code: 4401, exit: undefined });
    assert.ok(performance.now() - before < 10_000);
    assert.equal((await leader.client().call('DELETE', `/v2/pods/${id}`)).status, 204);
  });
});
