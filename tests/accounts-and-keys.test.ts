import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { ApiClient } from '../packages/testing/src/api-client.ts';
import { DATABASES } from '../packages/testing/src/test-database.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import { listAuditLog, serverFixture } from '../packages/testing/src/server-fixture.ts';
import type { TestAccount } from '../packages/testing/src/server-fixture.ts';

interface Made {
  id: string;
  key: string;
}

/** What an account owns, by the addresses at which it is read, changed and deleted. */
async function oneOfEach(account: ApiClient): Promise<{
  read: string[];
  change: [string, string, object][];
  remove: string[];
  ids: Record<string, string>;
}> {
  const make = async (path: string, body: object): Promise<string> => {
    const { status, body: made } = await account.call<Made>('POST', path, body);
    assert.ok(status === 200 || status === 201, `${path} ${status}`);
    return made.id;
  };
  const template = await make('/v2/templates', { name: 'theirs', image: 'a', env: { TOKEN: 'their token' } });
  const volume = await make('/v2/network-volumes', { name: 'theirs', size: 10, dataCenter: 'LOCAL-1' });
  const registry = await make('/v2/registries', {
    name: 'theirs',
    username: 'their user',
    password: 'their password',
  });
  const delegation = await make('/v2/registries/delegations', {
    resource: 'arn:aws:ecr:us-east-2:123456789012:repository/theirs',
  });
  const secret = await make('/v2/account/secrets', { name: 'theirs', value: 'their value' });
  const key = await make('/v2/account/api-keys', { name: 'theirs', access: 'ALL' });
  return {
    ids: { template, volume, registry, delegation, secret, key },
    read: [
      `/v1/templates/${template}`,
      `/v2/templates/${template}`,
      `/v1/networkvolumes/${volume}`,
      `/v2/network-volumes/${volume}`,
      `/v1/containerregistryauth/${registry}`,
      `/v2/registries/${registry}`,
      `/v2/account/secrets/${secret}`,
    ],
    change: [
      ['PATCH', `/v1/templates/${template}`, { name: 'ours' }],
      ['POST', `/v1/templates/${template}/update`, { name: 'ours' }],
      ['PATCH', `/v2/templates/${template}`, { name: 'ours' }],
      ['PATCH', `/v1/networkvolumes/${volume}`, { name: 'ours' }],
      ['POST', `/v1/networkvolumes/${volume}/update`, { size: 20 }],
      ['PATCH', `/v2/network-volumes/${volume}`, { size: 20 }],
      ['PATCH', `/v2/account/secrets/${secret}`, { value: 'ours' }],
      ['PATCH', `/v2/account/api-keys/${key}`, { enabled: false }],
    ],
    remove: [
      `/v1/templates/${template}`,
      `/v2/templates/${template}`,
      `/v1/networkvolumes/${volume}`,
      `/v2/network-volumes/${volume}`,
      `/v1/containerregistryauth/${registry}`,
      `/v2/registries/${registry}`,
      `/v2/registries/delegations/${delegation}`,
      `/v2/account/secrets/${secret}`,
      `/v2/account/api-keys/${key}`,
    ],
  };
}

const LISTS: [string, string | undefined][] = [
  ['/v1/templates', undefined],
  ['/v1/networkvolumes', undefined],
  ['/v1/containerregistryauth', undefined],
  ['/v2/templates', 'templates'],
  ['/v2/network-volumes', 'networkVolumes'],
  ['/v2/registries', 'registries'],
  ['/v2/registries/delegations', 'delegations'],
  ['/v2/account/secrets', 'secrets'],
];

for (const kind of DATABASES) {
  describe(`accounts, on ${kind}`, () => {
    const fixture = serverFixture(kind);
    let ann: TestAccount;
    let bob: TestAccount;
    before(async () => {
      ann = await fixture.createAccount('ann');
      bob = await fixture.createAccount('bob');
    });

    test('see nothing of each other, in any interface, and change nothing', async () => {
      const { read, change, remove, ids } = await oneOfEach(ann);
      const annsLog = (await listAuditLog(ann)).length;
      const bobsLog = (await listAuditLog(bob)).length;
      for (const path of read) assert.equal((await bob.call('GET', path)).status, 404, path);
      for (const [method, path, body] of change)
        assert.equal((await bob.call(method, path, body)).status, 404, `${method} ${path}`);
      for (const path of remove) assert.equal((await bob.call('DELETE', path)).status, 404, path);
      for (const [path, name] of LISTS) {
        const { body } = await bob.call<Record<string, unknown[]> & unknown[]>('GET', path);
        assert.deepEqual(name === undefined ? body : body[name], [], path);
      }
      await graphqlSeesNothing(bob, ids);
      assert.equal(
        (await bob.call('POST', '/v2/templates', { name: 'x', image: 'a', registry: ids['registry'] }))
          .status,
        400,
      );
      assert.equal(
        (
          await bob.call('POST', '/v1/templates', {
            name: 'x',
            imageName: 'a',
            containerRegistryAuthId: ids['registry'],
          })
        ).status,
        400,
      );

      for (const path of read) assert.equal((await ann.call('GET', path)).status, 200, path);
      assert.equal((await listAuditLog(ann)).length, annsLog);
      assert.equal((await listAuditLog(bob)).length, bobsLog);
    });

    test('answer someone else’s id exactly as an id that does not exist', async () => {
      const { ids } = await oneOfEach(await fixture.createAccount('carol'));
      const words = async (id: string): Promise<string> =>
        (await bob.call('GET', `/v2/templates/${id}`)).text.replaceAll(id, 'ID');
      assert.equal(await words(ids['template'] ?? ''), await words('nosuchidxx'));
    });

    test('are made and listed by the operator alone, and by a full key of the root account', async () => {
      for (const client of [
        ann,
        await keyed(fixture.operator, { access: 'READ_ONLY' }),
        await keyed(fixture.operator, { access: 'RESTRICTED', scopes: { rest: 'WRITE' } }),
      ]) {
        assert.equal((await client.call('GET', '/v2/accounts')).status, 403);
        assert.equal((await client.call('POST', '/v2/accounts', { name: 'more' })).status, 403);
        assert.equal((await client.call('GET', `/v2/accounts/${ann.id}/api-keys`)).status, 403);
        assert.equal(
          (await client.call('POST', `/v2/accounts/${ann.id}/api-keys`, { name: 'x', access: 'ALL' })).status,
          403,
        );
      }
      assert.equal(
        (await (await keyed(fixture.operator, { access: 'ALL' })).call('GET', '/v2/accounts')).status,
        200,
      );
      assert.equal((await fixture.operator.call('POST', '/v2/accounts', { name: 'ann' })).status, 409);
      assert.equal((await fixture.operator.call('GET', '/v2/accounts/nobody/api-keys')).status, 404);
      assert.equal(
        (await fixture.operator.call('POST', '/v2/accounts/nobody/api-keys', { name: 'x', access: 'ALL' }))
          .status,
        404,
      );
    });

    /** A client of the same account with another key. */
    const keyed = async (owner: ApiClient, fields: object): Promise<TestAccount> => {
      const { status, body, text } = await owner.call<Made>('POST', '/v2/account/api-keys', {
        name: 'k',
        ...fields,
      });
      assert.equal(status, 201, text);
      return { ...fixture.client(body.key), id: body.id, key: body.key };
    };
    /** 2xx for each: v1 read and write, v2 read and write, GraphQL read and write. */
    const rights = async (client: ApiClient): Promise<number[]> => [
      (await client.call('GET', '/v1/templates')).status,
      (await client.call('DELETE', '/v1/templates/none')).status,
      (await client.call('GET', '/v2/templates')).status,
      (await client.call('DELETE', '/v2/templates/none')).status,
      (await client.graphql('{ myself { id } }')).status,
      (await client.graphql('mutation { secretDelete(id: "none") }')).status,
    ];

    test('hand out keys that may do what they say: everything, reading, or the scopes', async () => {
      const scopes = (rest: string, graphql: string): object => ({
        access: 'RESTRICTED',
        scopes: { rest, graphql },
      });
      // 404 is what a key that may delete is told about a template that is not there.
      assert.deepEqual(await rights(await keyed(ann, { access: 'ALL' })), [200, 404, 200, 404, 200, 200]);
      assert.deepEqual(
        await rights(await keyed(ann, { access: 'READ_ONLY' })),
        [200, 403, 200, 403, 200, 403],
      );
      assert.deepEqual(
        await rights(await keyed(ann, scopes('WRITE', 'WRITE'))),
        [200, 404, 200, 404, 200, 200],
      );
      assert.deepEqual(
        await rights(await keyed(ann, scopes('READ', 'NONE'))),
        [200, 403, 200, 403, 403, 403],
      );
      assert.deepEqual(
        await rights(await keyed(ann, scopes('NONE', 'READ'))),
        [403, 403, 403, 403, 200, 403],
      );
      assert.deepEqual(
        await rights(await keyed(ann, scopes('NONE', 'WRITE'))),
        [403, 403, 403, 403, 200, 200],
      );
      assert.deepEqual(
        await rights(await keyed(ann, { access: 'RESTRICTED' })),
        [403, 403, 403, 403, 403, 403],
      );
    });

    test('change what a key may do, and it holds from the next request on', async () => {
      const client = await keyed(ann, { access: 'ALL' });
      const change = async (fields: object): Promise<void> =>
        assert.equal((await ann.call('PATCH', `/v2/account/api-keys/${client.id}`, fields)).status, 200);
      await change({ access: 'RESTRICTED', scopes: { rest: 'READ' } });
      assert.deepEqual(await rights(client), [200, 403, 200, 403, 403, 403]);
      await change({ access: 'READ_ONLY' });
      assert.deepEqual(await rights(client), [200, 403, 200, 403, 200, 403]);
      await change({ enabled: false });
      assert.deepEqual(await rights(client), [401, 401, 401, 401, 401, 401]);
      await change({ enabled: true, access: 'ALL' });
      assert.deepEqual(await rights(client), [200, 404, 200, 404, 200, 200]);
    });

    test('revoke a key, and it holds at once, in every interface', async () => {
      const client = await keyed(ann, { access: 'ALL' });
      assert.equal((await client.call('GET', '/v2/account')).status, 200);
      assert.equal((await ann.call('DELETE', `/v2/account/api-keys/${client.id}`)).status, 204);
      assert.deepEqual(await rights(client), [401, 401, 401, 401, 401, 401]);
      assert.equal((await ann.call('DELETE', `/v2/account/api-keys/${client.id}`)).status, 404);
    });

    test('give keys an end, after which they open nothing', async () => {
      const soon = Date.now() + 1500;
      const client = await keyed(ann, { access: 'ALL', expiresAt: new Date(soon).toISOString() });
      let admitted = 0;
      // Asks until it ends: whoever was let in was so before the end, whoever was refused after it.
      for (;;) {
        const asked = Date.now();
        const { status } = await client.call('GET', '/v2/account');
        if (status === 401) break;
        assert.ok(asked < soon, 'an expired key was let in');
        admitted += 1;
      }
      assert.ok(admitted > 0);
      assert.ok(Date.now() >= soon);
      assert.deepEqual(await rights(client), [401, 401, 401, 401, 401, 401]);
      for (const expiresAt of [new Date(soon).toISOString(), '1970-01-01T00:00:00Z'])
        assert.equal(
          (await ann.call('POST', '/v2/account/api-keys', { name: 'k', access: 'ALL', expiresAt })).status,
          400,
        );
      for (const expiresAt of ['tomorrow', '2030-02-30T00:00:00Z', '9999-12-31T23:59:59-10:00', 1])
        assert.equal(
          (await ann.call('POST', '/v2/account/api-keys', { name: 'k', access: 'ALL', expiresAt })).status,
          422,
        );
    });

    test('let full keys alone manage keys: a narrower one could make itself a wider one', async () => {
      const victim = await keyed(ann, { access: 'READ_ONLY' });
      for (const client of [
        await keyed(ann, { access: 'READ_ONLY' }),
        await keyed(ann, {
          access: 'RESTRICTED',
          scopes: { rest: 'WRITE', graphql: 'WRITE', serverless: 'WRITE' },
        }),
      ]) {
        assert.equal(
          (await client.call('POST', '/v2/account/api-keys', { name: 'wide', access: 'ALL' })).status,
          403,
        );
        assert.equal(
          (await client.call('PATCH', `/v2/account/api-keys/${client.id}`, { access: 'ALL' })).status,
          403,
        );
        assert.equal(
          (await client.call('PATCH', `/v2/account/api-keys/${victim.id}`, { enabled: false })).status,
          403,
        );
        assert.equal((await client.call('DELETE', `/v2/account/api-keys/${victim.id}`)).status, 403);
        const { body } = await client.graphql(
          'mutation { createApiKey(input: { name: "wide", permissions: "ALL" }) { key } }',
        );
        assert.ok(
          (body.errors !== undefined && body.data?.['createApiKey'] === undefined) ||
            (body.errors !== undefined && body.data?.['createApiKey'] === null),
          JSON.stringify(body),
        );
        assert.equal((await client.call('GET', '/v2/account/api-keys')).status, 200);
      }
      assert.equal((await victim.call('GET', '/v2/account')).status, 200);
    });

    test('never see a key again, nor its hash', async () => {
      const client = await keyed(ann, { access: 'ALL' });
      const { text, body } = await ann.call<{ apiKeys: Record<string, unknown>[] }>(
        'GET',
        '/v2/account/api-keys',
      );
      assert.ok(body.apiKeys.some(({ id }) => id === client.id));
      assert.ok(!text.includes(client.key) && !text.includes('hash'));
      const { text: shown } = await ann.graphql('{ myself { apiKeys { id name permissions } } }');
      assert.ok(shown.includes(client.id) && !shown.includes(client.key));
      assert.ok(!fixture.server.log().includes(client.key));
    });

    test('read in the audit log who changed what, when, with which key and through which interface', async () => {
      const dora = await fixture.createAccount('dora');
      const other = await keyed(dora, { access: 'ALL' });
      const made = await dora.call<Made>('POST', '/v1/templates', {
        name: 'logged',
        imageName: 'a',
        env: { TOKEN: 'first-hidden' },
      });
      const changed = await other.call('PATCH', `/v2/templates/${made.body.id}`, {
        image: 'b',
        env: { TOKEN: 'second-hidden' },
      });
      await other.graphql('mutation { deleteTemplate(templateName: "logged") }');
      const [deleted, updated, created] = await listAuditLog(dora);
      const dorasKey = (
        await dora.call<{ apiKeys: { id: string; name: string }[] }>('GET', '/v2/account/api-keys')
      ).body.apiKeys.find(({ name }) => name === 'first key');
      const common = { resource: 'template', resourceId: made.body.id };
      assert.partialDeepStrictEqual(created, {
        ...common,
        action: 'create',
        keyId: dorasKey?.id,
        interface: 'rest-v1',
        requestId: made.headers.get('x-request-id'),
        changes: [],
      });
      assert.partialDeepStrictEqual(updated, {
        ...common,
        action: 'update',
        keyId: other.id,
        interface: 'rest-v2',
        requestId: changed.headers.get('x-request-id'),
      });
      assert.partialDeepStrictEqual(deleted, {
        ...common,
        action: 'delete',
        keyId: other.id,
        interface: 'graphql',
      });
      assert.deepEqual(updated?.['changes'], [{ field: 'image', from: 'a', to: 'b' }, { field: 'env' }]);
      assert.doesNotMatch(JSON.stringify(await listAuditLog(dora)), /hidden/);
      const before = await dora.call<{ entries: { id: number }[] }>(
        'GET',
        `/v2/account/audit-log?limit=1&before=${String(updated?.['id'])}`,
      );
      assert.deepEqual(
        before.body.entries.map(({ id }) => id),
        [created?.['id']],
      );
    });

    test('see when a key was last used, also after a restart', async () => {
      const used = await keyed(bob, { access: 'ALL' });
      const idle = await keyed(bob, { access: 'ALL' });
      const start = Date.now();
      await used.call('GET', '/v2/account');
      assert.equal(await fixture.server.stop(), 0);
      fixture.server = await startServerProcess(fixture.database);
      const lastUsed = async (id: string): Promise<string | null | undefined> =>
        (
          await fixture
            .client(bob.key)
            .call<{ apiKeys: { id: string; lastUsedAt: string | null }[] }>('GET', '/v2/account/api-keys')
        ).body.apiKeys.find((key) => key.id === id)?.lastUsedAt;
      const at = Date.parse((await lastUsed(used.id)) ?? '');
      // The server keeps a time of its own, which may be a little off.
      assert.ok(at >= start - 1_000 && at <= Date.now() + 1_000, `${at}, ${start}`);
      assert.equal(await lastUsed(idle.id), null);
    });

    test('do not change or revoke the root key', async () => {
      const operator = fixture.client(fixture.server.key);
      const root = (
        await operator.call<{ apiKeys: { id: string; name: string }[] }>('GET', '/v2/account/api-keys')
      ).body.apiKeys.find(({ name }) => name === 'root key');
      assert.equal((await operator.call('DELETE', `/v2/account/api-keys/${root?.id}`)).status, 400);
      assert.equal(
        (await operator.call('PATCH', `/v2/account/api-keys/${root?.id}`, { enabled: false })).status,
        400,
      );
      assert.equal((await operator.call('GET', '/v2/accounts')).status, 200);
    });
  });
}

async function graphqlSeesNothing(stranger: ApiClient, ids: Record<string, string>): Promise<void> {
  const { body } = await stranger.graphql(
    '{ myself { podTemplates { id } networkVolumes { id } containerRegistryCreds { id } secrets { id } } }',
  );
  assert.deepEqual(body.data?.['myself'], {
    podTemplates: [],
    networkVolumes: [],
    containerRegistryCreds: [],
    secrets: [],
  });
  for (const document of [
    `{ podTemplate(id: "${ids['template']}") { id } }`,
    `{ secret(id: "${ids['secret']}") { id } }`,
    `mutation { saveTemplate(input: { id: "${ids['template']}", name: "ours" }) { id } }`,
    'mutation { deleteTemplate(templateName: "theirs") }',
    `mutation { updateNetworkVolume(input: { id: "${ids['volume']}", name: "ours" }) { id } }`,
    `mutation { deleteNetworkVolume(input: { id: "${ids['volume']}" }) }`,
    `mutation { updateRegistryAuth(input: { id: "${ids['registry']}", username: "u", password: "p" }) { id } }`,
    `mutation { deleteRegistryAuth(registryAuthId: "${ids['registry']}") }`,
    `mutation { secretValueUpdate(input: { id: "${ids['secret']}", value: "ours" }) { id } }`,
    `mutation { secretDelete(id: "${ids['secret']}") }`,
    `mutation { updateApiKey(input: { id: "${ids['key']}", enabled: false }) { id } }`,
    `mutation { deleteApiKey(id: "${ids['key']}") }`,
  ]) {
    const answer = await stranger.graphql(document);
    assert.ok((answer.body.errors?.length ?? 0) > 0, `${document} ${answer.text}`);
  }
}
