import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startGraphqlFixture } from './graphql.fixture.ts';
import type { GraphqlFixture } from './graphql.fixture.ts';

describe('who may ask over GraphQL', () => {
  let berth: GraphqlFixture;
  before(async () => {
    berth = await startGraphqlFixture();
  });
  after(() => berth.close());

  describe('the key', () => {
    const query = JSON.stringify({ query: '{ myself { id } }' });

    test('may be in the query string', async () => {
      assert.deepEqual((await berth.post(query, {}, { api_key: berth.rootKey })).data, {
        myself: { id: 'root' },
      });
    });

    test('in the header takes precedence over the query string, unless the header has none', async () => {
      assert.equal(
        (await berth.post(query, { authorization: 'Bearer wrong' }, { api_key: berth.rootKey })).status,
        401,
      );
      assert.deepEqual(
        (await berth.post(query, { authorization: 'Basic cHJveHk6eA==' }, { api_key: berth.rootKey })).data,
        { myself: { id: 'root' } },
      );
    });

    for (const [what, headers, address] of [
      ['an unknown key', { authorization: 'Bearer wrong' }, {}],
      ['an unknown key in the address', {}, { api_key: 'wrong' }],
      ['an empty key', {}, { api_key: '' }],
      ['a header without a key', { authorization: 'Bearer' }, {}],
      ['another scheme', { authorization: 'Basic eDp5' }, {}],
      ['a key without its scheme', { authorization: 'rpa_ABC' }, {}],
    ] as [string, Record<string, string>, Record<string, string>][]) {
      test(`${what} is 401, whatever is asked`, async () => {
        for (const body of [query, JSON.stringify({ query: '{ gpuTypes { id } }' }), '{']) {
          const answer = await berth.post(body, headers, address);
          assert.equal(answer.status, 401);
          assert.equal(answer.code, 'UNAUTHENTICATED');
        }
      });
    }

    test('without the scope is 403', async () => {
      const readOnly = await berth.key({ access: 'read-only' });
      const reading = await berth.key({ access: 'restricted', scopes: { graphql: 'read' } });
      const other = await berth.key({ access: 'restricted', scopes: { rest: 'write', serverless: 'write' } });
      const mutation = 'mutation { secretCreate(input: {name: "nope", value: "x"}) { id } }';
      for (const key of [readOnly, reading]) {
        assert.deepEqual((await berth.ask('{ myself { id } }', { key })).data, { myself: { id: 'root' } });
        const refused = await berth.ask(mutation, { key });
        assert.equal(refused.status, 403);
        assert.equal(refused.code, 'FORBIDDEN');
      }
      assert.equal((await berth.ask('{ myself { id } }', { key: other })).status, 403);
      assert.equal((await berth.ask(mutation, { key: other })).status, 403);
      assert.deepEqual((await berth.ask('{ myself { secrets { name } } }')).data, {
        myself: { secrets: [] },
      });
    });

    test('is checked for the chosen operation, not for the others of the document', async () => {
      const key = await berth.key({ access: 'read-only' });
      const both =
        'query Look { myself { id } } mutation Change { secretCreate(input: {name: "nope", value: "x"}) { id } }';
      assert.equal((await berth.ask(both, { key, operationName: 'Look' })).status, 200);
      assert.equal((await berth.ask(both, { key, operationName: 'Change' })).status, 403);
    });

    test('that is disabled, expired or revoked is 401', async () => {
      const { record, key } = await berth.resources.keys.create(
        {
          accountId: 'root',
          keyId: null,
          operator: true,
          fullAccess: true,
          interface: 'system',
          requestId: '',
        },
        { name: 'short', access: 'all', expiresAt: berth.clock.now() + 1000 },
      );
      assert.equal((await berth.ask('{ myself { id } }', { key })).status, 200);
      await berth.ask('mutation ($id: ID) { updateApiKey(input: {id: $id, enabled: false}) { id } }', {
        variables: { id: record.id },
      });
      assert.equal((await berth.ask('{ myself { id } }', { key })).status, 401);
      await berth.ask('mutation ($id: ID) { updateApiKey(input: {id: $id, enabled: true}) { id } }', {
        variables: { id: record.id },
      });
      berth.clock.advance(1000);
      assert.equal((await berth.ask('{ myself { id } }', { key })).status, 401);
    });
  });

  describe('without a key', () => {
    for (const query of [
      '{ gpuTypes { id } }',
      '{ cpuFlavors { id } }',
      '{ cpuTypes { id } }',
      '{ dataCenters { id } }',
      '{ countryCodes }',
      '{ serverlessGpuPools { id } }',
      '{ __schema { queryType { name } } }',
      '{ __type(name: "GpuType") { name } }',
      '{ __typename }',
      'mutation { __typename }',
      'query Mixed { __typename a: countryCodes ...f } fragment f on Query { gpuTypes { id __typename } }',
    ]) {
      test(`${query} answers`, async () => {
        const answer = await berth.ask(query, { key: null });
        assert.equal(answer.status, 200);
        assert.deepEqual(answer.errors, []);
      });
    }

    test('myself is null', async () => {
      const answer = await berth.ask('{ myself { id secrets { id } apiKeys { id } } countryCodes }', {
        key: null,
      });
      assert.equal(answer.status, 200);
      assert.equal(answer.text, '{"data":{"myself":null,"countryCodes":["RO"]}}');
    });

    for (const query of [
      '{ podTemplates { id } }',
      '{ podTemplate(id: "runpod-ubuntu") { id } }',
      '{ secret(id: "x") { id } }',
      '{ gpuTypes: secret(id: "x") { id } }',
      '{ countryCodes secret(id: "x") { id } }',
      '{ ...f } fragment f on Query { ... { podTemplates { id } } }',
      '{ countryCodes podTemplates @skip(if: true) { id } }',
      'mutation { secretCreate(input: {name: "a", value: "b"}) { id } }',
      'mutation { gpuTypes { id } }',
      '{ pods { id } }',
    ]) {
      test(`${query} is 401`, async () => {
        const answer = await berth.ask(query, { key: null });
        assert.equal(answer.status, 401);
        assert.equal(answer.code, 'UNAUTHENTICATED');
        assert.match(answer.message, /Authorization: Bearer/);
      });
    }

    test('an error in an open document is an error of the document', async () => {
      const answer = await berth.ask('{ gpuTypes { colour } }', { key: null });
      assert.equal(answer.status, 200);
      assert.match(answer.message, /Cannot query field "colour"/);
    });

    test('types that refer to each other are not unfolded without end', async () => {
      const unfolding =
        `{ gpuTypes ${'{ nodeGroupDatacenters { gpuAvailability { gpuType '.repeat(6)} { id } ` +
        `${'} } }'.repeat(6)} }`;
      assert.match((await berth.ask(unfolding, { key: null })).message, /more than 10000 entries/);
    });
  });
});
