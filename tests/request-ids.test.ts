import assert from 'node:assert/strict';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { describe, test } from 'node:test';
import { createRunningPod } from '../packages/testing/src/pod-client.ts';
import { createQueueEndpoint } from '../packages/testing/src/queue-endpoint-client.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

/** Answers, with an id of its own where it is asked for one. */
const POD_SERVER =
  `require('node:http').createServer((q, s) => s.writeHead(200, q.url === '/own' ? { 'x-request-id': ` +
  `'own' } : {}).end()).listen(process.env.BERTH_PORT_8000)`;
const WEB_SOCKET = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
};

describe('the id of a request', () => {
  const fixture = serverFixture('sqlite', { BERTH_RATE_LIMITS: 'off', BERTH_LOG_LEVEL: 'debug' });
  /** The head of an answer, whether the protocol was switched or not. */
  const headOf = (
    path: string,
    headers: Record<string, string> = {},
    method = 'GET',
  ): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const asked = request(`${fixture.server.url}${path}`, {
        method,
        headers: { authorization: `Bearer ${fixture.server.key}`, ...headers },
      });
      asked.on('error', reject);
      asked.on('response', (response) => resolve(response.resume()));
      asked.on('upgrade', (response, socket) => {
        socket.destroy();
        resolve(response);
      });
      asked.end();
    });
  /** The answer has an id, and the log has a line with it. */
  const checkId = async (
    path: string,
    expected: number,
    headers?: Record<string, string>,
    method?: string,
  ): Promise<void> => {
    const { statusCode, headers: answered } = await headOf(path, headers, method);
    assert.equal(statusCode, expected, path);
    const id = answered['x-request-id'];
    assert.ok(typeof id === 'string' && /^[\da-f-]{36}$/.test(id), `${path}: ${String(id)}`);
    await waitFor(`a line of the log about ${path}`, () => fixture.server.log().includes(`"reqId":"${id}"`));
  };

  test('is in the answer and in the log on every path', async () => {
    const endpoint = await createQueueEndpoint(fixture.server.url, fixture.server.key);
    await checkId('/v2/pods', 200);
    await checkId('/v1/pods', 200);
    await checkId('/graphql', 405);
    await checkId('/nowhere', 404);
    await checkId(`/v2/${endpoint.id}/health`, 200);
    await checkId(`/v2/${endpoint.id}/no-such-operation`, 400);
    await checkId('/s3/bucket/key', 404);
    await checkId('/proxy/unknown-8000/', 404);
    await checkId('/proxy/unknown-8000/', 404, WEB_SOCKET);
    await checkId('/v2/pods/unknown/terminal', 404, WEB_SOCKET);
    await checkId('/v2/nowhere/socket', 404, WEB_SOCKET);
    const channel = { connection: 'Upgrade', upgrade: 'berth-worker/1' };
    await checkId(`/v2/${endpoint.id}/job-channel/w1`, 101, channel);
    await checkId(`/v2/${endpoint.id}/job-channel/w1`, 401, { ...channel, authorization: 'Bearer wrong' });
  });

  test('of a pod is Berth’s, unless the pod gives one of its own', async () => {
    const { id } = await createRunningPod(fixture.server.client(), {
      cmd: ['node', '-e', POD_SERVER],
      ports: ['8000/http'],
    });
    await waitFor('the pod answers', async () => (await headOf(`/proxy/${id}-8000/`)).statusCode === 200);
    await checkId(`/proxy/${id}-8000/`, 200);
    await checkId(`/proxy/${id}-8000`, 308);
    assert.equal((await headOf(`/proxy/${id}-8000/own`)).headers['x-request-id'], 'own');
    await checkId(`/v2/pods/${id}/terminal`, 101, WEB_SOCKET);
    await fixture.server.client().call('DELETE', `/v2/pods/${id}`);
  });
});
