import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startTcpProxy } from '../packages/testing/src/tcp-proxy.ts';
import type { TcpProxy } from '../packages/testing/src/tcp-proxy.ts';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';

describe('a database that goes away and comes back', () => {
  let database: TestDatabase;
  let cable: TcpProxy;
  let server: ServerProcess;
  before(async () => {
    database = await createTestDatabase('postgres');
    cable = await startTcpProxy(database.url);
    server = await startServerProcess({ data: database.data, url: cable.url });
    assert.equal(
      (await server.client().call('POST', '/v2/templates', { name: 'before', image: 'x' })).status,
      201,
    );
  });
  after(async () => {
    await server.stop();
    await cable.disconnect();
    await database.drop();
  });
  const statusOf = async (method: string, path: string, body?: unknown): Promise<number> =>
    (await server.client().call(method, path, body)).status;

  test('the server lives on, says that it is not ready, and refuses in every interface with 503', async () => {
    await cable.disconnect();
    assert.equal(await statusOf('GET', '/healthz'), 200);
    const ready = await server.client().call('GET', '/readyz');
    assert.deepEqual(
      [ready.status, ready.body],
      [503, { status: 'not ready', reason: 'the database does not answer' }],
    );
    const v1 = await server.client().call('POST', '/v1/templates', { name: 'lost', imageName: 'x' });
    assert.deepEqual([v1.status, Object.keys(v1.body)], [503, ['message']]);
    const v2 = await server.client().call('POST', '/v2/templates', { name: 'lost', image: 'x' });
    assert.deepEqual(
      [v2.status, v2.body],
      [503, { title: 'Service Unavailable', status: 503, detail: 'the database does not answer; try again' }],
    );
    assert.equal((await server.client().graphql('{ myself { id } }')).status, 503);
    assert.doesNotMatch(v1.text + v2.text + ready.text, /ECONN|127\.0\.0\.1|postgres/);
    assert.equal(await statusOf('GET', '/v2/openapi.json'), 200);
  });

  test('and serves again as soon as it is back, with all that was acknowledged and nothing that was not', async () => {
    await cable.reconnect();
    assert.equal(await statusOf('GET', '/readyz'), 200);
    const { body } = await server.client().call<{ templates: { name: string }[] }>('GET', '/v2/templates');
    assert.deepEqual(
      body.templates.map(({ name }) => name),
      ['before'],
    );
    assert.equal(await statusOf('POST', '/v2/templates', { name: 'after', image: 'x' }), 201);
    assert.equal((await server.client().graphql('{ myself { id } }')).status, 200);
  });

  test('also when it goes away while many ask', async () => {
    const asking = Array.from({ length: 40 }, (_, index) =>
      server.client().call('POST', '/v2/templates', { name: `amid-${index}`, image: 'x' }),
    );
    await asking[0];
    await cable.disconnect();
    const answers = await Promise.all(asking);
    assert.ok(
      answers.every(({ status }) => status === 201 || status === 503),
      answers.map(({ status }) => status).join(),
    );
    await cable.reconnect();
    const { body } = await server.client().call<{ templates: { name: string }[] }>('GET', '/v2/templates');
    const there = new Set(body.templates.map(({ name }) => name));
    answers.forEach(({ status }, index) =>
      assert.ok(status !== 201 || there.has(`amid-${index}`), `amid-${index}`),
    );
    assert.equal(await server.stop(), 0);
  });
});
