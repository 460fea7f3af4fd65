import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { onlyResult, startGraphqlFixture } from './graphql.fixture.ts';
import type { GraphqlFixture, GraphqlResponse } from './graphql.fixture.ts';

describe('registry credentials', () => {
  let berth: GraphqlFixture;
  before(async () => {
    berth = await startGraphqlFixture();
  });
  after(() => berth.close());

  const save = (input: Record<string, unknown>, key?: string): Promise<GraphqlResponse> =>
    berth.call('saveRegistryAuth', 'SaveRegistryAuthInput', '{ id name userId }', input, key);
  const update = (input: Record<string, unknown>, key?: string): Promise<GraphqlResponse> =>
    berth.call('updateRegistryAuth', 'UpdateRegistryAuthInput', '{ id name }', input, key);
  const remove = (id: string, key?: string): Promise<GraphqlResponse> =>
    berth.ask('mutation ($id: String!) { deleteRegistryAuth(registryAuthId: $id) }', {
      variables: { id },
      ...(key !== undefined && { key }),
    });

  test('are saved, listed oldest first, renewed and deleted', async () => {
    const key = await berth.account('registries');
    const first = onlyResult(await save({ name: 'first', username: 'u', password: 'p' }, key));
    berth.clock.advance(1000);
    const second = onlyResult(await save({ name: 'second', username: 'u', password: 'p' }, key));
    assert.deepEqual((await berth.ask('{ myself { containerRegistryCreds { id name } } }', { key })).data, {
      myself: {
        containerRegistryCreds: [
          { id: first.id, name: 'first' },
          { id: second.id, name: 'second' },
        ],
      },
    });
    assert.deepEqual(onlyResult(await update({ id: first.id, username: 'new', password: 'new' }, key)), {
      id: first.id,
      name: 'first',
    });
    assert.equal((await remove(first.id, key)).text, '{"data":{"deleteRegistryAuth":null}}');
    assert.equal((await remove(first.id, key)).code, 'NOT_FOUND');
  });

  test('need a name, a user and a password, none of them empty', async () => {
    assert.equal(
      (await save({ name: 'x', username: 'u', password: '' })).message,
      'password is required: missing or empty',
    );
    assert.equal((await save({})).message, 'name, username and password are required: missing or empty');
    assert.equal(
      (await update({ id: 'x', username: '' })).message,
      'username and password are required: missing or empty',
    );
    assert.match(
      (await save({ name: 'x'.repeat(192), username: 'u', password: 'p' })).message,
      /at most 191 characters/,
    );
    assert.match((await save({ name: '  ', username: 'u', password: 'p' })).message, /must not be empty/);
    const single = await berth.ask(
      `mutation ($password: String!) { saveRegistryAuth(input: {name: "x", username: "u", password:
        $password}) { id } }`,
      { variables: { password: '' } },
    );
    assert.equal(
      single.message,
      'password is required: missing or empty',
      'also where the empty text has a variable of its own',
    );
    assert.match((await berth.ask('mutation { deleteRegistryAuth }')).message, /registryAuthId is required/);
  });

  test('have names of their own, and belong to one account', async () => {
    const own = onlyResult(await save({ name: 'mine', username: 'u', password: 'p' }));
    assert.equal((await save({ name: 'mine', username: 'u', password: 'p' })).code, 'TAKEN');
    const key = await berth.account('registry thief');
    assert.equal((await update({ id: own.id, username: 'u', password: 'p' }, key)).code, 'NOT_FOUND');
    assert.equal((await remove(own.id, key)).code, 'NOT_FOUND');
    assert.deepEqual((await berth.ask('{ myself { containerRegistryCreds { id } } }', { key })).data, {
      myself: { containerRegistryCreds: [] },
    });
  });

  test('show neither user nor password', async () => {
    for (const field of ['username', 'password'])
      assert.match(
        (await berth.ask(`{ myself { containerRegistryCreds { ${field} } } }`)).message,
        /Cannot query field/,
      );
  });
});
