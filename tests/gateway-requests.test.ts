import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { describe, test } from 'node:test';
import {
  readResponse,
  loadBalancerFixture,
  DOMAIN,
  PUBLIC_HOST,
  WORKER_HEADER,
} from '../packages/testing/src/load-balancer-fixture.ts';
import { createApiClient } from '../packages/testing/src/api-client.ts';
import type { ApiClient } from '../packages/testing/src/api-client.ts';
import { createQueueEndpoint } from '../packages/testing/src/queue-endpoint-client.ts';

interface Seen {
  worker: string;
  method: string;
  url: string;
  headers: Record<string, string>;
  body: string;
}

const MEGABYTE = 1024 * 1024;
const LIMIT = 30 * MEGABYTE;

describe('requests to a load balancing endpoint', () => {
  const fixture = loadBalancerFixture();

  test('arrive with any method and path, also those of the job API, and say where they came from', async () => {
    const endpoint = await fixture.endpoint();
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND']) {
      const { status, headers, body } = await endpoint.call<Seen>(
        method,
        '/a%20b/run?x=%2F&y',
        method === 'GET' ? undefined : `by ${method}`,
      );
      assert.deepEqual(
        [status, body.method, body.url, body.body],
        [200, method, '/a%20b/run?x=%2F&y', method === 'GET' ? '' : `by ${method}`],
      );
      assert.equal(headers.get(WORKER_HEADER), body.worker);
    }
    const head = await endpoint.call('HEAD', '/teapot');
    assert.deepEqual([head.status, head.headers.get('x-seen-method'), head.text], [418, 'HEAD', '']);
    for (const path of [
      '/run',
      '/runsync',
      '/status/x',
      '/health',
      '/stream/x',
      '/purge-queue',
      '/openai/v1/models',
      '/job-take/x',
      '/',
    ]) {
      assert.equal((await endpoint.call<Seen>('POST', path, '{}')).body.url, path);
    }
    const { body } = await endpoint.call<Seen>('GET', '/seen');
    assert.partialDeepStrictEqual(body.headers, {
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-prefix': `/v2/${endpoint.id}`,
    });
    assert.equal(
      (await fixture.client.call<Seen>('GET', `/v2/${encoded(endpoint.id)}/seen?a`)).body.url,
      '/seen?a',
    );
    assert.equal((await endpoint.call('GET', '/ping')).status, 200);
  });

  test('find their endpoint by host name as well', async () => {
    const endpoint = await fixture.endpoint();
    const byName = async (host: string, path: string): Promise<{ status: number; text: string }> =>
      readResponse(endpoint.openRequest('', { path, headers: { host } }).end());
    const { status, text } = await byName(`${endpoint.id}.${DOMAIN}:8484`, '/v2/pods?deep');
    assert.equal(status, 200, text);
    const seen = JSON.parse(text) as Seen;
    assert.deepEqual(
      [seen.url, seen.headers['host'], seen.headers['x-forwarded-prefix']],
      ['/v2/pods?deep', `${endpoint.id}.${DOMAIN}:8484`, undefined],
    );
    assert.equal((await byName(`nosuchendpoint.${DOMAIN}`, '/')).status, 404);
    for (const path of ['/healthz', `/v2/serverless/${endpoint.id}`, `/v2/${endpoint.id}/seen`])
      assert.equal((await byName(PUBLIC_HOST, path)).status, 200, path);
  });

  test('may name their target with scheme and host, and so may those to all else', async () => {
    const endpoint = await fixture.endpoint();
    const queue = await createQueueEndpoint(fixture.server.url, fixture.server.key);
    const ask = async (
      target: string,
      headers: Record<string, string> = {},
    ): Promise<{ status: number; text: string }> =>
      readResponse(endpoint.openRequest('', { path: target, headers }).end());
    const seen = async (
      target: string,
      headers?: Record<string, string>,
    ): Promise<[string, string | undefined]> => {
      const { url, headers: told } = JSON.parse((await ask(target, headers)).text) as Seen;
      return [url, told['host']];
    };
    assert.deepEqual(await seen(`http://cloud.example/v2/${endpoint.id}/seen?x`), [
      '/seen?x',
      'cloud.example',
    ]);
    assert.deepEqual(
      await seen(`http://${endpoint.id}.${DOMAIN}/seen?x`, { host: PUBLIC_HOST, expect: '100-continue' }),
      ['/seen?x', `${endpoint.id}.${DOMAIN}`],
    );
    for (const path of [`/v2/${queue.id}/health`, `/v2/serverless/${queue.id}`, '/healthz'])
      assert.equal((await ask(`http://cloud.example${path}`)).status, 200, path);
    const talking = endpoint
      .openRequest('', {
        path: `http://${endpoint.id}.${DOMAIN}/chat`,
        headers: { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-key': 'key' },
      })
      .end();
    const [answer] = (await Promise.race([once(talking, 'upgrade'), once(talking, 'response')])) as [
      IncomingMessage,
    ];
    assert.equal(answer.statusCode, 101);
    talking.destroy();
  });

  test('are let in with a key of the account that may write, and with no other', async () => {
    const endpoint = await fixture.endpoint();
    const other = await fixture.endpoint({ workers: { min: 0, max: 0 } });
    const stranger = await fixture.client.call<{ key: string }>('POST', '/v2/accounts', { name: 'stranger' });
    const asked = async (key: string | undefined): Promise<[number, unknown]> => {
      const { status, body } = await createApiClient(fixture.server.url, key).call<{ error: unknown }>(
        'GET',
        `/v2/${endpoint.id}/seen`,
      );
      return [status, body.error];
    };
    const keyFor = (fields: object): Promise<string> => newKey(fixture.client, fields);
    assert.deepEqual((await asked(undefined))[0], 401);
    assert.deepEqual((await asked('rpa_WRONG'))[0], 401);
    assert.deepEqual((await asked(stranger.body.key))[0], 404);
    assert.deepEqual((await asked(await keyFor({ access: 'READ_ONLY' })))[0], 403);
    assert.deepEqual(
      (
        await asked(
          await keyFor({ access: 'RESTRICTED', scopes: { serverless: 'WRITE' }, endpoints: [other.id] }),
        )
      )[0],
      403,
    );
    assert.deepEqual(
      await asked(
        await keyFor({ access: 'RESTRICTED', scopes: { serverless: 'WRITE' }, endpoints: [endpoint.id] }),
      ),
      [200, undefined],
    );

    const queue = await createQueueEndpoint(fixture.server.url, fixture.server.key);
    const wrong = await fixture.client.call<{ error: string }>('GET', `/v2/${queue.id}/any/path`);
    assert.deepEqual([wrong.status, wrong.body.error], [400, 'not allowed for QB API']);
    assert.equal((await fixture.client.call('GET', '/v2/nosuchendpoint/any/path')).status, 404);
  });

  test('and their answers are at most 30 MB', async () => {
    const endpoint = await fixture.endpoint();
    const whole = await endpoint.call('POST', '/back', Buffer.alloc(LIMIT, 'y'));
    assert.deepEqual([whole.status, whole.text.length], [200, LIMIT]);
    assert.equal((await endpoint.call('POST', '/back', Buffer.alloc(LIMIT + 1))).status, 413);
    const endless = endpoint.openRequest('/keep/big', { method: 'POST' });
    const refused = readResponse(endless);
    const piece = Buffer.alloc(MEGABYTE);
    // More than is forwarded, and less than is discarded: the connection stays open for the answer.
    let sent = 0;
    const send = (): void => {
      for (let isReady = true; isReady && sent <= LIMIT; sent += piece.length) isReady = endless.write(piece);
    };
    endless.on('drain', send);
    await endpoint.call('GET', '/about');
    send();
    const reading = endpoint.call('POST', '/read', '');
    const { status } = await refused;
    endless.off('drain', send).destroy();
    assert.equal(status, 413);
    await reading;

    const told = await endpoint.call('GET', `/bytes/${LIMIT + 1}`, undefined, { 'x-tell-length': 'yes' });
    assert.equal(told.status, 502);
    await assert.rejects(readResponse(endpoint.openRequest(`/bytes/${LIMIT + 1}`).end()), /aborted/);
    assert.equal((await endpoint.call('GET', '/seen')).status, 200);
  });
});

function encoded(id: string): string {
  return `%${id.charCodeAt(0).toString(16)}${id.slice(1)}`;
}

async function newKey(client: ApiClient, fields: object): Promise<string> {
  const { status, body, text } = await client.call<{ key: string }>('POST', '/v2/account/api-keys', {
    name: 'k',
    ...fields,
  });
  assert.equal(status, 201, text);
  return body.key;
}
