import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { onlyResult, startGraphqlFixture } from './graphql.fixture.ts';
import type { GraphqlFixture, GraphqlResponse, ResponseObject } from './graphql.fixture.ts';

describe('API keys', () => {
  let berth: GraphqlFixture;
  before(async () => {
    berth = await startGraphqlFixture();
  });
  after(() => berth.close());

  const create = (input: Record<string, unknown>, key?: string): Promise<GraphqlResponse> =>
    berth.call(
      'createApiKey',
      'CreateApiKeyInput',
      '{ id name permissions createdAt expiresAt key }',
      input,
      key,
    );
  const update = (input: Record<string, unknown>, key?: string): Promise<GraphqlResponse> =>
    berth.call('updateApiKey', 'UpdateApiKeyInput', '{ id name permissions enabled }', input, key);
  const opens = async (key: unknown): Promise<number> =>
    (await berth.ask('{ myself { id } }', { key: String(key) })).status;

  test('are made, used, listed, changed and revoked', async () => {
    const account = await berth.account('keys');
    const expiresAt = new Date(berth.clock.now() + 86_400_000).toISOString();
    const made = onlyResult(await create({ name: 'reader', permissions: 'READ_ONLY', expiresAt }, account));
    assert.match(String(made['key']), /^rpa_/);
    assert.deepEqual(
      [made['name'], made['permissions'], made['expiresAt']],
      ['reader', 'READ_ONLY', expiresAt],
    );
    assert.equal(await opens(made['key']), 200);

    const { data } = await berth.ask(
      '{ myself { apiKeys { id name permissions enabled createdAt lastUsed expiresAt } } }',
      { key: account },
    );
    const [listed] = (data as { myself: { apiKeys: ResponseObject[] } }).myself.apiKeys.filter(
      ({ id }) => id === made.id,
    );
    assert.deepEqual(listed, {
      id: made.id,
      name: 'reader',
      permissions: 'READ_ONLY',
      enabled: true,
      createdAt: new Date(berth.clock.now()).toISOString(),
      lastUsed: null,
      expiresAt,
    });

    assert.deepEqual(onlyResult(await update({ id: made.id, name: 'renamed' }, account)), {
      id: made.id,
      name: 'renamed',
      permissions: 'READ_ONLY',
      enabled: true,
    });
    assert.equal(onlyResult(await update({ id: made.id, enabled: false }, account))['enabled'], false);
    assert.equal(await opens(made['key']), 401);
    onlyResult(await update({ id: made.id, enabled: true, permissions: 'ALL' }, account));
    assert.equal(
      (await create({ name: 'by the new one', permissions: 'ALL' }, String(made['key']))).errors.length,
      0,
    );
    const remove = (): Promise<GraphqlResponse> =>
      berth.ask('mutation ($id: ID!) { deleteApiKey(id: $id) }', {
        variables: { id: made.id },
        key: account,
      });
    assert.equal((await remove()).text, '{"data":{"deleteApiKey":null}}');
    assert.equal(await opens(made['key']), 401);
    assert.equal((await remove()).code, 'NOT_FOUND');
  });

  test('may be restricted, in words that come back the same', async () => {
    const permissions = '{"rest":"write","graphql":"read","serverless":"read","endpoints":["abc"]}';
    const made = onlyResult(await create({ name: 'narrow', permissions }));
    assert.equal(made['permissions'], permissions);
    assert.equal(await opens(made['key']), 200);
    const closed = onlyResult(await update({ id: made.id, permissions: '{"serverless":"write"}' }));
    assert.equal(closed['permissions'], '{"rest":"none","graphql":"none","serverless":"write"}');
    assert.equal(await opens(made['key']), 403);
    assert.equal(
      onlyResult(await update({ id: made.id, name: 'same rights' }))['permissions'],
      closed['permissions'],
    );
  });

  test('are refused with the reason', async () => {
    assert.equal((await create({ name: 'x' })).message, 'permissions is required: missing or empty');
    assert.equal((await create({ permissions: 'ALL' })).message, 'name is required: missing or empty');
    assert.match(
      (await create({ name: 'x', permissions: 'everything' })).message,
      /permissions must be ALL, READ_ONLY, or JSON text/,
    );
    assert.match(
      (await create({ name: 'x', permissions: 'ALL', expiresAt: 'tomorrow' })).message,
      /expiresAt must be a date and time such as/,
    );
    assert.match(
      (await create({ name: 'x', permissions: 'ALL', expiresAt: 5 })).message,
      /expiresAt must be a date and time such as/,
    );
    assert.match(
      (await create({ name: 'x', permissions: 'ALL', expiresAt: '2001-01-01T00:00:00Z' })).message,
      /must be in the future/,
    );
  });

  test('are managed with full access only', async () => {
    const writing = await berth.key({ access: 'restricted', scopes: { graphql: 'write' } });
    const answer = await create({ name: 'wider', permissions: 'ALL' }, writing);
    assert.equal(answer.status, 403);
    assert.equal(answer.code, 'FORBIDDEN');
    assert.match(answer.message, /only a key with full access may manage keys/);
  });

  test('of others are not there', async () => {
    const mine = onlyResult(await create({ name: 'mine', permissions: 'ALL' }));
    const key = await berth.account('key thief');
    assert.equal((await update({ id: mine.id, enabled: false }, key)).code, 'NOT_FOUND');
    assert.equal((await berth.ask(`mutation { deleteApiKey(id: "${mine.id}") }`, { key })).code, 'NOT_FOUND');
    assert.equal(await opens(mine['key']), 200);
  });
});
