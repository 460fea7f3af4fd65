import assert from 'node:assert/strict';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { EXAMPLES_FOLDER, examplesFixture } from '../packages/testing/src/examples-fixture.ts';

describe('the example of a load balanced endpoint', () => {
  const fixture = examplesFixture();
  const { berth } = fixture;

  test('takes HTTP requests and WebSockets straight to its worker', async () => {
    const deployed = await berth<{ id: string; type: string; requestUrls: { base: string } }>(
      'deploy',
      join(EXAMPLES_FOLDER, 'http-server'),
      '--type',
      'lb',
      '--min',
      '1',
      '--wait',
    );
    assert.deepEqual([deployed.code, deployed.json?.type], [0, 'LOAD_BALANCER'], deployed.stderr);
    const { base } = deployed.json.requestUrls;
    const headers = { authorization: `Bearer ${fixture.server.key}` };

    const ping = await fetch(`${base}/ping`, { headers });
    assert.deepEqual([ping.status, await ping.json()], [200, { status: 'healthy' }]);
    const { worker } = (await (await fetch(`${base}/`, { headers })).json()) as { worker: string };
    assert.match((await berth('ps')).stdout, /"idle":1|"running":1/);
    const echoed = await fetch(`${base}/echo`, { method: 'POST', headers, body: 'as it came' });
    assert.equal(await echoed.text(), 'as it came');
    assert.equal((await fetch(`${base}/nothing`, { headers })).status, 404);

    const socket = new WebSocket(`${base.replace(/^http/, 'ws')}/ws`, { headers });
    await once(socket, 'open');
    for (const message of ['hello', 'x'.repeat(1000)]) {
      socket.send(message);
      const [event] = (await once(socket, 'message')) as [{ data: string }];
      assert.equal(event.data, `${worker}: ${message}`);
    }
    socket.close();
    await once(socket, 'close');
    assert.match((await berth('logs', 'http-server')).stdout, new RegExp(`worker ${worker} listens`));
  });
});
