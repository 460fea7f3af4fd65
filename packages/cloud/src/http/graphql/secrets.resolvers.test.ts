import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { onlyResult, startGraphqlFixture } from './graphql.fixture.ts';
import type { GraphqlFixture, GraphqlResponse } from './graphql.fixture.ts';

describe('secrets', () => {
  let berth: GraphqlFixture;
  before(async () => {
    berth = await startGraphqlFixture();
  });
  after(() => berth.close());

  const ALL = '{ id name description createdAt updatedAt lastUpdatedAt lastRetrievedAt }';
  const create = (input: Record<string, unknown>, key?: string): Promise<GraphqlResponse> =>
    berth.call('secretCreate', 'SecretCreateInput', ALL, input, key);
  const setValue = (input: Record<string, unknown>, key?: string): Promise<GraphqlResponse> =>
    berth.call('secretValueUpdate', 'SecretValueUpdateInput', ALL, input, key);
  const describeIt = (input: Record<string, unknown>, key?: string): Promise<GraphqlResponse> =>
    berth.call('secretDescriptionUpdate', 'SecretDescriptionUpdateInput', ALL, input, key);

  test('are made, read, listed, changed and deleted, and their value is never shown', async () => {
    const key = await berth.account('secrets');
    const made = onlyResult(await create({ name: 'token', value: 'one' }, key));
    const at = new Date(berth.clock.now()).toISOString();
    assert.deepEqual(made, {
      id: made.id,
      name: 'token',
      description: null,
      createdAt: at,
      updatedAt: at,
      lastUpdatedAt: at,
      lastRetrievedAt: null,
    });
    assert.deepEqual(
      (await berth.ask(`query ($id: ID!) { secret(id: $id) ${ALL} }`, { variables: { id: made.id }, key }))
        .data,
      { secret: made },
    );
    assert.deepEqual((await berth.ask('{ myself { secrets { id name } } }', { key })).data, {
      myself: { secrets: [{ id: made.id, name: 'token' }] },
    });

    berth.clock.advance(60_000);
    const later = new Date(berth.clock.now()).toISOString();
    assert.deepEqual(onlyResult(await describeIt({ id: made.id, description: 'for the hub' }, key)), {
      ...made,
      description: 'for the hub',
      updatedAt: later,
    });
    assert.deepEqual(onlyResult(await setValue({ id: made.id, value: 'two' }, key)), {
      ...made,
      description: 'for the hub',
      updatedAt: later,
      lastUpdatedAt: later,
    });
    assert.equal(onlyResult(await describeIt({ id: made.id, description: '' }, key))['description'], null);
    assert.match(
      (await berth.ask('{ myself { secrets { value } } }', { key })).message,
      /Cannot query field "value"/,
    );

    const remove = (): Promise<GraphqlResponse> =>
      berth.ask('mutation ($id: String!) { secretDelete(id: $id) }', { variables: { id: made.id }, key });
    assert.equal((await remove()).text, '{"data":{"secretDelete":null}}');
    assert.equal((await remove()).code, 'NOT_FOUND');
  });

  test('need a name and a value, and a name of their own', async () => {
    assert.equal((await create({ name: 'x', value: '' })).message, 'value is required: missing or empty');
    assert.equal((await create({ value: 'x' })).message, 'name is required: missing or empty');
    assert.equal((await setValue({ id: 'x', value: '' })).message, 'value is required: missing or empty');
    assert.match((await create({ name: 'bad name', value: 'x' })).message, /must start with a letter/);
    assert.match((await create({ name: 'RUNPOD_X', value: 'x' })).message, /must not start with RUNPOD/);
    onlyResult(await create({ name: 'twice', value: 'x' }));
    const again = await create({ name: 'twice', value: 'x' });
    assert.equal(again.status, 200);
    assert.equal(again.code, 'CONFLICT');
  });

  test('of others are not there', async () => {
    const { id } = onlyResult(await create({ name: 'private', value: 'x', description: 'mine' }));
    const key = await berth.account('secret thief');
    for (const answer of [
      await berth.ask(`{ secret(id: "${id}") { name } }`, { key }),
      await setValue({ id, value: 'y' }, key),
      await describeIt({ id, description: 'y' }, key),
      await berth.ask(`mutation { secretDelete(id: "${id}") }`, { key }),
    ]) {
      assert.equal(answer.status, 200);
      assert.equal(answer.code, 'NOT_FOUND');
    }
    assert.deepEqual((await berth.ask(`{ secret(id: "${id}") { description } }`)).data, {
      secret: { description: 'mine' },
    });
  });
});
