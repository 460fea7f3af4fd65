import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { DOMAIN, latch, createGatewayFixture, readAll, waitUntil } from './gateway.fixture.ts';
import type { GatewayFixture } from './gateway.fixture.ts';

describe('a request through the gateway', () => {
  let fixture: GatewayFixture;
  /** What the worker saw last. */
  let seen: IncomingMessage;

  before(async () => {
    fixture = await createGatewayFixture();
    await fixture.worker('w1', async (request, response) => {
      seen = request;
      const body = await text(request);
      if (request.url === '/status')
        return response.writeHead(418, 'Short And Stout', { 'x-a': '1' }).end('tea');
      if (request.url === '/empty') return response.writeHead(204).end();
      if (request.url === '/unchanged')
        return response.writeHead(304, { etag: '"e"', 'content-length': '5' }).end();
      if (request.url === '/cookies')
        return response
          .writeHead(200, [
            'Set-Cookie',
            'a=1',
            'Set-Cookie',
            'b=2',
            'X-Odd-Case',
            'é',
            'Connection',
            'X-Secret',
            'X-Secret',
            'hidden',
          ])
          .end();
      if (request.url === '/trailers') {
        response.writeHead(200, { trailer: 'X-Sum' });
        response.write('body');
        response.addTrailers({ 'X-Sum': '42' });
        return response.end();
      }
      if (request.url === '/moved') return response.writeHead(307, { location: '/there?x=1' }).end();
      if (request.url === '/moved-here')
        return response.writeHead(307, { location: `http://${request.headers.host}/there` }).end();
      if (request.url === '/moved-away')
        return response.writeHead(307, { location: 'https://example.com/there' }).end();
      response.setHeader('x-path', request.url ?? '');
      response.end(`${request.method} ${body} ${JSON.stringify(request.trailers)}`);
    });
  });
  after(() => fixture.close());

  test('keeps its method, path, query and body', async () => {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND']) {
      const {
        status,
        text: body,
        headers,
      } = await fixture.send(
        '/a%2Fb//c/../?x=1&y=%20',
        { method, headers: method === 'GET' ? {} : { 'content-length': '5' } },
        method === 'GET' ? undefined : 'hello',
      );
      assert.equal(status, 200);
      assert.equal(body, `${method} ${method === 'GET' ? '' : 'hello'} {}`);
      assert.equal(headers['x-path'], '/a%2Fb//c/../?x=1&y=%20');
      assert.equal(headers['x-runpod-worker-id'], 'w1');
    }
  });

  test('takes the words of the job API for plain paths', async () => {
    for (const path of ['/run', '/status/1', '/ping', '/health', '/job-take/x', '/openai/v1/models'])
      assert.equal((await fixture.send(path)).headers['x-path'], path);
  });

  test('reaches the root with and without a slash, and with a query alone', async () => {
    assert.equal((await fixture.send('')).headers['x-path'], '/');
    assert.equal((await fixture.send('/')).headers['x-path'], '/');
    assert.equal((await fixture.send('?a=b')).headers['x-path'], '/?a=b');
  });

  test('is found by host name too, with any path and port', async () => {
    const { status, headers } = await fixture.send('', {
      path: '/v2/x/y?z',
      headers: { host: `EP1.${DOMAIN}:8484` },
    });
    assert.equal(status, 200);
    assert.equal(headers['x-path'], '/v2/x/y?z');
    assert.equal(seen.headers['x-forwarded-prefix'], undefined);
  });

  test('keeps the headers except hop-by-hop ones, and adds X-Forwarded headers', async () => {
    await fixture.send('/', {
      headers: {
        'X-Mine': '1',
        accept: 'a/b',
        te: 'trailers',
        'keep-alive': 'timeout=9',
        'proxy-authorization': 'x',
        'x-hop': 'gone',
        connection: 'keep-alive, X-Hop',
        'x-forwarded-prefix': '/lie',
      },
    });
    const { headers, rawHeaders } = seen;
    assert.ok(rawHeaders.includes('X-Mine'));
    assert.equal(headers.accept, 'a/b');
    assert.equal(headers.authorization, `Bearer ${fixture.key}`);
    assert.equal(headers.host, `127.0.0.1:${fixture.port}`);
    for (const name of ['te', 'keep-alive', 'proxy-authorization', 'x-hop', 'connection'])
      assert.equal(headers[name], undefined, name);
    assert.equal(headers['x-forwarded-for'], '127.0.0.1');
    assert.equal(headers['x-forwarded-proto'], 'http');
    assert.equal(headers['x-forwarded-host'], `127.0.0.1:${fixture.port}`);
    assert.equal(headers['x-forwarded-prefix'], '/v2/ep1');
  });

  test('appends to the X-Forwarded headers of other proxies', async () => {
    await fixture.send('/', {
      headers: {
        'x-forwarded-for': '203.0.113.9',
        'x-forwarded-proto': 'https',
        'x-forwarded-host': 'berth.example',
      },
    });
    assert.equal(seen.headers['x-forwarded-for'], '203.0.113.9, 127.0.0.1');
    assert.equal(seen.headers['x-forwarded-proto'], 'https');
    assert.equal(seen.headers['x-forwarded-host'], 'berth.example');
  });

  test('brings the status, its words and the headers back', async () => {
    const { status, message, headers, text: body } = await fixture.send('/status');
    assert.deepEqual(
      [status, message.statusMessage, headers['x-a'], body],
      [418, 'Short And Stout', '1', 'tea'],
    );
    const cookies = await fixture.send('/cookies');
    assert.deepEqual(cookies.headers['set-cookie'], ['a=1', 'b=2']);
    assert.equal(cookies.headers['x-odd-case'], 'é');
    assert.equal(cookies.headers['x-secret'], undefined);
    assert.ok(cookies.message.rawHeaders.includes('X-Odd-Case'));
  });

  test('ends answers without a body where they end', async () => {
    assert.equal((await fixture.send('/empty')).status, 204);
    const unchanged = await fixture.send('/unchanged');
    assert.deepEqual([unchanged.status, unchanged.headers['content-length'], unchanged.text], [304, '5', '']);
    const head = await fixture.send('/x', { method: 'HEAD' });
    assert.deepEqual([head.status, head.text, head.headers['x-path']], [200, '', '/x']);
    assert.equal((await fixture.send('/x')).status, 200);
  });

  test('carries trailers both ways', async () => {
    const { message, text: body } = await fixture.send('/trailers');
    assert.equal(body, 'body');
    assert.deepEqual(message.trailers, { 'x-sum': '42' });
    const outgoing = fixture.open('/up', { method: 'POST', headers: { trailer: 'X-Check' } });
    outgoing.write('abc');
    outgoing.addTrailers({ 'X-Check': '7' });
    outgoing.end();
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
    assert.equal(await text(answer), 'POST abc {"x-check":"7"}');
  });

  test('rewrites redirects to the worker, and keeps others', async () => {
    assert.equal((await fixture.send('/moved')).headers.location, '/v2/ep1/there?x=1');
    assert.equal(
      (await fixture.send('/moved-here')).headers.location,
      `http://127.0.0.1:${fixture.port}/v2/ep1/there`,
    );
    assert.equal((await fixture.send('/moved-away')).headers.location, 'https://example.com/there');
    assert.equal(
      (await fixture.send('', { path: '/moved', headers: { host: `ep1.${DOMAIN}` } })).headers.location,
      '/there?x=1',
    );
  });

  test('uses a connection to the worker again', async () => {
    const worker = await fixture.worker('w2', (_request, response) => response.end('ok'), false);
    fixture.pool.remove('w1');
    fixture.pool.add(worker);
    for (let count = 0; count < 20; count += 1)
      assert.equal(
        (
          await fixture.send(
            '/',
            { method: count % 2 === 0 ? 'GET' : 'POST' },
            count % 2 === 0 ? undefined : 'x',
          )
        ).text,
        'ok',
      );
    assert.equal(worker.opened, 1);
  });

  test('of HTTP/1.0 is answered until the connection closes', async () => {
    const socket = await fixture.raw(
      `GET ${fixture.base}/old HTTP/1.0\r\nAuthorization: ${fixture.key}\r\n\r\n`,
    );
    const answer = await readAll(socket);
    assert.match(answer, /^HTTP\/1\.1 200 OK\r\n/);
    assert.match(answer, /\r\n\r\nok$/);
  });
});

describe('who may pass the gateway', () => {
  let fixture: GatewayFixture;
  let asked = 0;

  before(async () => {
    fixture = await createGatewayFixture();
    await fixture.worker('w1', (_request, response) => {
      asked += 1;
      response.end('in');
    });
  });
  after(() => fixture.close());

  test('is a caller whose key may write, with or without Bearer', async () => {
    const writer = await fixture.newKey({
      access: 'restricted',
      scopes: { serverless: 'write' },
      endpoints: ['ep1'],
    });
    for (const authorization of [fixture.key, `Bearer ${fixture.key}`, `bearer ${writer}`])
      assert.equal((await fixture.send('/', { headers: { authorization } })).text, 'in');
  });

  test('is no other caller: 401, 403 and 404 as in the job API, and no worker is called', async () => {
    const before = asked;
    const reader = await fixture.newKey({ access: 'read-only' });
    const other = await fixture.newKey({
      access: 'restricted',
      scopes: { serverless: 'write' },
      endpoints: ['ep2'],
    });
    const cases: [string, string, number][] = [
      ['', '/v2/ep1/', 401],
      ['Bearer nothing', '/v2/ep1/', 401],
      [reader, '/v2/ep1/', 403],
      [other, '/v2/ep1/', 403],
      [fixture.strangersKey, '/v2/ep1/', 404],
      [fixture.key, '/v2/ep9/', 404],
    ];
    for (const [authorization, path, status] of cases) {
      const answer = await fixture.send(
        '',
        { path, method: 'POST', headers: { authorization } },
        'x'.repeat(100_000),
      );
      assert.equal(answer.status, status, `${authorization} ${path}`);
      assert.equal(typeof (JSON.parse(answer.text) as { error: unknown }).error, 'string');
    }
    assert.equal(asked, before);
  });

  test('a queue endpoint has no such paths', async () => {
    const queue = await createGatewayFixture({ endpoint: { type: 'QUEUE', scalerType: 'QUEUE_DELAY' } });
    const { status, text: body } = await queue.send('/anything');
    assert.deepEqual([status, body], [400, '{"error":"not allowed for QB API"}']);
    await queue.close();
  });
});

test('when the server stops, what is under way ends, and no connection to a worker is kept', async (context) => {
  const fixture = await createGatewayFixture();
  context.after(() => fixture.close());
  const [held, inside] = [latch(), latch()];
  const slow = await fixture.worker('slow', async (_request, response) => {
    inside.open();
    await held.opened;
    response.end('late');
  });
  const answer = fixture.send('/', { headers: { 'x-runpod-worker-id': 'strict slow' } });
  await inside.opened;
  fixture.gateway.close();
  held.open();
  assert.equal((await answer).text, 'late');
  await waitUntil(() => slow.connections.size === 0);
});
