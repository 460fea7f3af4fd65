import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DATABASES, createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';

const REQUESTS: [string, string, unknown?][] = [
  ['GET', '/v1/templates'],
  ['POST', '/v1/templates', { name: 'x', imageName: 'y' }],
  ['POST', '/v1/templates', '{'],
  ['GET', '/v1/templates/unknown'],
  ['DELETE', '/v1/templates/unknown'],
  ['GET', '/v1/networkvolumes'],
  ['GET', '/v1/containerregistryauth'],
  ['GET', '/v1/openapi.json'],
  ['GET', '/v1/docs'],
  ['GET', '/v1'],
  ['GET', '/v1/'],
  ['GET', '/v1/unknown'],
  ['PUT', '/v1/templates', {}],
  ['GET', '/v1/templates/%ZZ'],
  ['GET', `/v1/templates/${'x'.repeat(600)}`],
  ['OPTIONS', '/v1/templates'],
];

for (const kind of DATABASES) {
  describe(`v1 before its end, on ${kind}`, () => {
    const fixture = serverFixture(kind, { BERTH_V1_SUNSET: '2031-02-03' });

    test('says on every answer since when it is deprecated and when it ends, errors included', async () => {
      for (const key of [fixture.server.key, undefined, 'rpa_wrong']) {
        for (const [method, path, body] of REQUESTS) {
          const { headers, status } = await fixture.server.client(key).call(method, path, body);
          const where = `${method} ${path} ${status}`;
          assert.match(headers.get('deprecation') ?? '', /^@\d+$/, where);
          assert.equal(headers.get('sunset'), 'Mon, 03 Feb 2031 00:00:00 GMT', where);
          assert.match(headers.get('link') ?? '', /successor-version/, where);
        }
      }
    });

    test('v2 has no such headers', async () => {
      for (const path of ['/v2/templates', '/v2/unknown', '/v2/openapi.json']) {
        const { headers } = await fixture.operator.call('GET', path);
        assert.equal(headers.get('deprecation') ?? headers.get('sunset'), null, path);
      }
    });
  });

  describe(`v1 once it is turned off, on ${kind}`, () => {
    let database: TestDatabase;
    let server: ServerProcess;
    before(async () => {
      database = await createTestDatabase(kind);
      server = await startServerProcess(database, { BERTH_V1_ENABLED: 'false' });
    });
    after(async () => {
      await server.stop();
      await database.drop();
    });

    test('is gone everywhere, with or without a key, and points to v2', async () => {
      for (const key of [server.key, undefined, 'rpa_wrong']) {
        for (const [method, path, body] of REQUESTS) {
          const {
            status,
            headers,
            body: answer,
          } = await server.client(key).call<{ message: string }>(method, path, body);
          assert.equal(status, 410, `${method} ${path}`);
          assert.equal(headers.get('content-type'), 'application/json; charset=utf-8');
          assert.deepEqual(Object.keys(answer), ['message']);
          assert.match(answer.message, /\/v2/);
          assert.ok(headers.has('sunset') && headers.has('deprecation'));
        }
      }
      assert.match(server.output(), /REST v1 {3}turned off/);
    });

    test('and v2 and GraphQL are as before', async () => {
      assert.equal(
        (await server.client().call('POST', '/v2/templates', { name: 'x', image: 'y' })).status,
        201,
      );
      assert.equal((await server.client().call('GET', '/v2/openapi.json')).status, 200);
      assert.equal((await server.client().graphql('{ myself { id } }')).status, 200);
    });
  });
}
