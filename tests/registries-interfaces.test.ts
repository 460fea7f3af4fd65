import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import { serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';

interface Named {
  id: string;
  name: string;
}
const credentials = { username: 'hidden-user', password: 'hidden-password' };

for (const kind of DATABASES) {
  describe(`registries, on ${kind}`, () => {
    const fixture = serverFixture(kind, { BERTH_LOG_LEVEL: 'trace' });
    let ann: TestAccount;
    before(async () => {
      ann = await fixture.createAccount('ann');
    });

    test('take credentials and show a name', async () => {
      const one = await ann.call<Named>('POST', '/v1/containerregistryauth', { name: 'one', ...credentials });
      const two = await ann.call<Named>('POST', '/v2/registries', { name: 'two', ...credentials });
      assert.deepEqual([one.status, two.status], [200, 201]);
      assert.deepEqual(
        [one.body, two.body],
        [
          { id: one.body.id, name: 'one' },
          { id: two.body.id, name: 'two' },
        ],
      );
      assert.deepEqual((await ann.call('GET', `/v2/registries/${one.body.id}`)).body, one.body);
      assert.deepEqual((await ann.call('GET', `/v1/containerregistryauth/${two.body.id}`)).body, two.body);
      assert.deepEqual(
        (await ann.call<Named[]>('GET', '/v1/containerregistryauth')).body.map(({ name }) => name).sort(),
        ['one', 'two'],
      );
      assert.deepEqual(
        (await ann.call<{ registries: Named[] }>('GET', '/v2/registries')).body.registries
          .map(({ name }) => name)
          .sort(),
        ['one', 'two'],
      );
    });

    test('have one name each, and need all three fields', async () => {
      assert.equal(
        (await ann.call('POST', '/v1/containerregistryauth', { name: 'two', ...credentials })).status,
        400,
      );
      assert.equal((await ann.call('POST', '/v2/registries', { name: 'one', ...credentials })).status, 400);
      for (const missing of ['name', 'username', 'password']) {
        const body = { name: 'three', ...credentials, [missing]: undefined };
        assert.equal((await ann.call('POST', '/v1/containerregistryauth', body)).status, 400, missing);
        assert.equal((await ann.call('POST', '/v2/registries', body)).status, 422, missing);
        assert.equal(
          (await ann.call('POST', '/v2/registries', { ...body, [missing]: '' })).status,
          422,
          missing,
        );
      }
    });

    test('are not updated by REST, and are replaced by GraphQL', async () => {
      const { body } = await ann.call<{ registries: Named[] }>('GET', '/v2/registries');
      const id = body.registries[0]?.id;
      assert.equal((await ann.call('PATCH', `/v2/registries/${id}`, credentials)).status, 405);
      assert.equal((await ann.call('PATCH', `/v1/containerregistryauth/${id}`, credentials)).status, 405);
      const changed = await ann.graphql(
        `mutation { updateRegistryAuth(input: { id: "${id}", username: "hidden-other", password:
          "hidden-too" }) { id name } }`,
      );
      assert.equal(changed.body.errors, undefined);
    });

    test('are deleted with 204 and gone', async () => {
      for (const path of ['/v1/containerregistryauth', '/v2/registries']) {
        const { body } = await ann.call<Named>('POST', '/v2/registries', {
          name: `short ${path}`,
          ...credentials,
        });
        const answer = await ann.call('DELETE', `${path}/${body.id}`);
        assert.deepEqual([answer.status, answer.text, answer.headers.get('content-type')], [204, '', null]);
        assert.equal((await ann.call('DELETE', `${path}/${body.id}`)).status, 404);
        assert.equal((await ann.call('GET', `${path}/${body.id}`)).status, 404);
      }
    });

    test('are delegated by the ARN of a repository', async () => {
      const resource = 'arn:aws:ecr:us-east-2:123456789012:repository/team/image:v1';
      const { status, body } = await ann.call<Record<string, unknown>>('POST', '/v2/registries/delegations', {
        resource,
        name: 'builds',
      });
      assert.equal(status, 201);
      assert.deepEqual(body, {
        id: body['id'],
        name: 'builds',
        delegatorUserId: ann.id,
        awsUser: '123456789012',
        repository: 'team/image',
        tag: 'v1',
        awsRegion: 'us-east-2',
        dockerRegistryUri: '123456789012.dkr.ecr.us-east-2.amazonaws.com',
        createdAt: body['createdAt'],
      });
      const unnamed = await ann.call<Record<string, unknown>>('POST', '/v2/registries/delegations', {
        resource,
      });
      assert.equal(unnamed.body['name'], null);
      assert.equal(
        (await ann.call<{ delegations: unknown[] }>('GET', '/v2/registries/delegations')).body.delegations
          .length,
        2,
      );
      for (const bad of ['', 'x', 'arn:aws:s3:::bucket'])
        assert.ok(
          [400, 422].includes(
            (await ann.call('POST', '/v2/registries/delegations', { resource: bad })).status,
          ),
          bad,
        );
      assert.equal(
        (await ann.call('DELETE', `/v2/registries/delegations/${String(body['id'])}`)).status,
        204,
      );
      assert.equal(
        (await ann.call('DELETE', `/v2/registries/delegations/${String(body['id'])}`)).status,
        404,
      );
    });

    test('leave no trace of what they keep: in no answer, in no log', async () => {
      const seen = await Promise.all(
        ['/v1/containerregistryauth', '/v2/registries', '/v2/account/audit-log'].map(
          async (path) => (await ann.call('GET', path)).text,
        ),
      );
      assert.doesNotMatch(seen.join('\n') + fixture.server.log(), /hidden-/);
    });
  });
}
