import assert from 'node:assert/strict';
import { request } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { before, describe, test } from 'node:test';
import { serverFixture } from '../../packages/testing/src/server-fixture.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';

/** Answers with the headers that it got. */
const SERVER = `require('http').createServer((q, r) => {
  r.setHeader('service-worker-allowed', '/');
  r.setHeader('content-type', 'text/html');
  r.end(JSON.stringify(q.headers));
}).listen(process.env.BERTH_PORT_8000 || 8000)`;

describe('pages of pods and the session of the console', () => {
  const fixture = serverFixture('sqlite');
  let cookie: string;
  let pod: string;

  before(async () => {
    const { headers } = await call('POST', '/login', {
      headers: { 'x-berth-console': '1', 'content-type': 'application/json' },
      body: JSON.stringify({ key: fixture.server.key }),
    });
    cookie = headers['set-cookie']?.[0]?.split(';')[0] ?? '';
    const made = await fixture.operator.call<{ id: string }>('POST', '/v2/pods', {
      name: 'web',
      image: 'local/shell',
      cmd: ['node', '-e', SERVER],
      cpu: { id: 'cpu3c', vcpuCount: 2 },
      ports: ['8000/http'],
    });
    assert.equal(made.status, 201, JSON.stringify(made.body));
    pod = made.body.id;
    await waitFor(
      'the server of the pod',
      async () => (await call('GET', `/proxy/${pod}-8000/`)).status === 200,
    );
  });

  async function call(
    method: string,
    path: string,
    { headers = {}, body }: { headers?: Record<string, string>; body?: string } = {},
  ): Promise<{ status: number; headers: IncomingHttpHeaders; text: string }> {
    const sent = request(`${fixture.server.url}${path}`, { method, headers });
    sent.end(body);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    return { status: response.statusCode ?? 0, headers: response.headers, text: await text(response) };
  }

  test('a browser is sent to a host name of the pod, which serves it', async () => {
    const { status, headers } = await call('GET', `/proxy/${pod}-8000/a?b=1`, {
      headers: { accept: 'text/html', 'sec-fetch-mode': 'navigate' },
    });
    const { port } = new URL(fixture.server.url);
    assert.deepEqual([status, headers.location], [307, `//${pod}-8000.localhost:${port}/a?b=1`]);
    const own = await call('GET', '/a', { headers: { host: `${pod}-8000.localhost:${port}` } });
    assert.equal(own.status, 200);
    assert.equal(own.headers['content-security-policy'], undefined);
  });

  test('with a session the page is sandboxed, and neither cookie nor token reaches the pod', async () => {
    const { headers, text: seen } = await call('GET', `/proxy/${pod}-8000/`, {
      headers: { cookie: `${cookie}; own=1` },
    });
    assert.match(String(headers['content-security-policy']), /^sandbox (?!.*allow-same-origin)/);
    assert.equal(headers['service-worker-allowed'], undefined);
    assert.match(seen, /own=1/);
    assert.doesNotMatch(seen, /bst_|authorization/);
  });

  test('without a session nothing changes for a program', async () => {
    const { status, headers } = await call('GET', `/proxy/${pod}-8000/`);
    assert.deepEqual([status, headers['content-security-policy']], [200, undefined]);
  });

  test('the cookie alone writes nothing, and does nothing from other sites', async () => {
    const name = 'by another site';
    const write = (headers: Record<string, string>) =>
      call('POST', '/v2/templates', {
        headers: { cookie, 'content-type': 'application/json', ...headers },
        body: JSON.stringify({ name, image: 'local/echo' }),
      });
    assert.equal((await write({})).status, 401);
    assert.equal((await write({ 'x-berth-console': '1', origin: 'http://evil.example' })).status, 401);
    assert.equal((await write({ 'x-berth-console': '1', 'sec-fetch-site': 'cross-site' })).status, 401);
    const read = (site: string) =>
      call('GET', '/v2/session', { headers: { cookie, 'sec-fetch-site': site } });
    assert.equal((await read('cross-site')).status, 401);
    assert.equal((await read('same-origin')).status, 200);
    assert.equal((await call('POST', '/logout', { headers: { cookie } })).status, 403);
  });

  test('API clients see what they saw before; browsers get pages with a strict policy', async () => {
    assert.equal((await call('GET', '/')).status, 404);
    assert.equal((await call('GET', '/serverless', { headers: { accept: 'application/json' } })).status, 404);
    const page = await call('GET', '/login', { headers: { accept: 'text/html' } });
    if (page.status === 503) return; // the console was not built
    const policy = String(page.headers['content-security-policy']);
    assert.match(policy, /default-src 'none'; script-src 'self';.*frame-ancestors 'none'/);
    assert.equal(page.headers['x-content-type-options'], 'nosniff');
    const script = /src="(\/assets\/[^"]+\.js)"/.exec(page.text)?.[1] ?? '';
    const asset = await call('GET', script, { headers: { 'accept-encoding': 'br' } });
    assert.match(String(asset.headers['cache-control']), /immutable/);
    assert.equal(asset.headers['content-encoding'], 'br');
    assert.equal((await call('GET', '/assets/..%2findex.html')).status, 404);
  });
});
