import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import { listAuditLog, serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';

interface Secret {
  id: string;
  name: string;
  description: string | null;
  createdAt: string;
  valueLastUpdatedAt: string;
}

for (const kind of DATABASES) {
  describe(`secrets and SSH keys, on ${kind}`, () => {
    const fixture = serverFixture(kind, { BERTH_LOG_LEVEL: 'trace' });
    let ann: TestAccount;
    before(async () => {
      ann = await fixture.createAccount('ann');
    });
    const list = async (query = ''): Promise<Secret[]> =>
      (await ann.call<{ secrets: Secret[] }>('GET', `/v2/account/secrets${query}`)).body.secrets;

    test('a secret is shown without its value, in REST and in GraphQL', async () => {
      const made = await ann.call<Secret>('POST', '/v2/account/secrets', {
        name: 'token',
        value: 'hidden-value',
        description: 'for the hub',
      });
      assert.equal(made.status, 201);
      assert.deepEqual(Object.keys(made.body).sort(), [
        'createdAt',
        'description',
        'id',
        'name',
        'valueLastUpdatedAt',
      ]);
      assert.deepEqual((await ann.call('GET', `/v2/account/secrets/${made.body.id}`)).body, made.body);
      assert.deepEqual(await list(), [made.body]);
      const { body } = await ann.graphql('{ myself { secrets { id name description } } }');
      assert.deepEqual(body.data?.['myself'], {
        secrets: [{ id: made.body.id, name: 'token', description: 'for the hub' }],
      });
      assert.ok((await ann.graphql('{ myself { secrets { value } } }')).body.errors !== undefined);
    });

    test('a taken name is 409, and is found in any case', async () => {
      const { body: made } = await ann.graphql<{ secretCreate: Secret }>(
        'mutation { secretCreate(input: { name: "from_graphql", value: "hidden-graphql" }) { id name description } }',
      );
      assert.equal(made.data?.secretCreate.description, null);
      for (const name of ['token', 'from_graphql'])
        assert.equal(
          (await ann.call('POST', '/v2/account/secrets', { name, value: 'hidden-again' })).status,
          409,
        );
      assert.deepEqual(
        (await list('?name=TOKEN')).map(({ name }) => name),
        ['token'],
      );
      assert.deepEqual(await list('?name=nothing'), []);
    });

    test('names and values have rules', async () => {
      for (const name of ['', '1x', 'a b', 'é', 'x'.repeat(192), 'a}}'])
        assert.equal((await ann.call('POST', '/v2/account/secrets', { name, value: 'x' })).status, 422, name);
      for (const name of ['RUNPOD_KEY', 'runpod'])
        assert.equal((await ann.call('POST', '/v2/account/secrets', { name, value: 'x' })).status, 400, name);
      for (const name of ['_a', 'a/b.c-d_e', 'x'.repeat(191)])
        assert.equal((await ann.call('POST', '/v2/account/secrets', { name, value: 'x' })).status, 201, name);
      assert.equal((await ann.call('POST', '/v2/account/secrets', { name: 'empty', value: '' })).status, 422);
    });

    test('a value may be large, up to its limit, and is counted in bytes', async () => {
      const limit = 16 * 1024 * 1024;
      assert.equal(
        (await ann.call('POST', '/v2/account/secrets', { name: 'large', value: 'x'.repeat(limit - 1) }))
          .status,
        201,
      );
      assert.equal(
        (await ann.call('POST', '/v2/account/secrets', { name: 'larger', value: 'x'.repeat(limit) })).status,
        400,
      );
      assert.equal(
        (await ann.call('POST', '/v2/account/secrets', { name: 'wide', value: 'é'.repeat(limit / 2) }))
          .status,
        400,
      );
      assert.equal(
        (await ann.call('POST', '/v2/account/secrets', { name: 'largest', value: 'x'.repeat(2 * limit) }))
          .status,
        413,
      );
    });

    test('the value and the description change, the name does not', async () => {
      const [token] = await list('?name=token');
      const patch = (body: object) => ann.call<Secret>('PATCH', `/v2/account/secrets/${token?.id}`, body);
      const valued = await patch({ value: 'hidden-new' });
      assert.ok(valued.body.valueLastUpdatedAt > (token?.valueLastUpdatedAt ?? ''));
      assert.equal(valued.body.description, 'for the hub');
      const described = await patch({ description: '' });
      assert.deepEqual(
        [described.body.description, described.body.valueLastUpdatedAt],
        [null, valued.body.valueLastUpdatedAt],
      );
      assert.equal((await patch({})).status, 422);
      assert.equal((await patch({ name: 'renamed' })).status, 422);
      assert.equal((await patch({ value: '' })).status, 422);
      assert.equal((await ann.call('PATCH', '/v2/account/secrets/unknown', { value: 'x' })).status, 404);
      const [last, before] = await listAuditLog(ann);
      assert.deepEqual(
        [last?.['changes'], before?.['changes']],
        [[{ field: 'description', from: 'for the hub', to: null }], [{ field: 'value' }]],
      );
    });

    test('a deleted secret is gone', async () => {
      const [token] = await list('?name=token');
      const answer = await ann.call('DELETE', `/v2/account/secrets/${token?.id}`);
      assert.deepEqual([answer.status, answer.text, answer.headers.get('content-type')], [204, '', null]);
      assert.equal((await ann.call('DELETE', `/v2/account/secrets/${token?.id}`)).status, 404);
      assert.equal((await ann.call('GET', `/v2/account/secrets/${token?.id}`)).status, 404);
    });

    test('SSH keys are replaced as a whole, and are one text in GraphQL', async () => {
      const keys = ['ssh-ed25519 AAAA ann@laptop', 'ecdsa-sha2-nistp256 BBBB'];
      assert.deepEqual((await ann.call('PUT', '/v2/account/ssh-keys', { keys })).body, { keys });
      assert.deepEqual((await ann.call('GET', '/v2/account/ssh-keys')).body, { keys });
      assert.deepEqual((await ann.graphql('{ myself { pubKey } }')).body.data?.['myself'], {
        pubKey: keys.join('\n\n'),
      });
      await ann.graphql(
        'mutation { updateUserSettings(input: { pubKey: "ssh-rsa CCCC\\nssh-rsa DDDD two words" }) { pubKey } }',
      );
      assert.deepEqual((await ann.call('GET', '/v2/account/ssh-keys')).body, {
        keys: ['ssh-rsa CCCC', 'ssh-rsa DDDD two words'],
      });
      for (const bad of [['no key'], ['ssh-rsa'], ['ssh-rsa A\nssh-rsa B'], 'ssh-rsa A', [1]])
        assert.equal(
          (await ann.call('PUT', '/v2/account/ssh-keys', { keys: bad })).status,
          422,
          JSON.stringify(bad),
        );
      assert.deepEqual((await ann.call('PUT', '/v2/account/ssh-keys', { keys: [] })).body, { keys: [] });
    });

    test('no value is in any answer, in the log, or readable on disk', async () => {
      await ann.call('POST', '/v2/templates', {
        name: 'sealed',
        image: 'x',
        env: { PLAIN: 'hidden-in-env' },
      });
      await ann.call('POST', '/v2/registries', {
        name: 'sealed',
        username: 'hidden-user',
        password: 'hidden-password',
      });
      const seen = await Promise.all(
        ['/v2/account/secrets', '/v2/account/audit-log', '/v2/registries'].map(
          async (path) => (await ann.call('GET', path)).text,
        ),
      );
      assert.doesNotMatch(seen.join('\n'), /hidden-/);
      assert.doesNotMatch(fixture.server.log(), /hidden-/);
      for (const entry of readdirSync(fixture.database.data, { recursive: true, withFileTypes: true })) {
        if (entry.isFile())
          assert.ok(!readFileSync(join(entry.parentPath, entry.name)).includes('hidden-'), entry.name);
      }
    });
  });
}
