import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { buildSchema, isEnumType, isInputObjectType, isObjectType, isSpecifiedScalarType } from 'graphql';
import type { GraphQLNamedType, GraphQLSchema } from 'graphql';
import { startGraphqlFixture } from './graphql.fixture.ts';
import type { GraphqlFixture } from './graphql.fixture.ts';
import { buildExecutableSchema, graphqlModules } from './graphql-schema.ts';

let berth: GraphqlFixture;
let asked: GraphQLSchema;
let ours: GraphQLSchema;
before(async () => {
  berth = await startGraphqlFixture();
  asked = buildSchema(readFileSync(new URL('client-documents.graphql', import.meta.url), 'utf8'));
  ours = buildExecutableSchema(graphqlModules(berth.resources)).schema;
});
after(() => berth.close());

/** What one type has that the other lacks, or has otherwise. */
function missing(wanted: GraphQLNamedType, found: GraphQLNamedType | undefined): string[] {
  if (found === undefined) return [wanted.name];
  if (isEnumType(wanted))
    return isEnumType(found)
      ? wanted
          .getValues()
          .filter(({ name }) => found.getValue(name) === undefined)
          .map(({ name }) => `${wanted.name}.${name}`)
      : [wanted.name];
  if (isInputObjectType(wanted)) {
    const fields = isInputObjectType(found) ? found.getFields() : {};
    return Object.values(wanted.getFields())
      .filter(({ name, type }) => String(fields[name]?.type) !== String(type))
      .map(({ name }) => `${wanted.name}.${name}`);
  }
  if (!isObjectType(wanted)) return [];
  const fields = isObjectType(found) ? found.getFields() : {};
  return Object.values(wanted.getFields()).flatMap(({ name, type, args }) => {
    const field = fields[name];
    if (field === undefined || String(field.type) !== String(type)) return [`${wanted.name}.${name}`];
    return args
      .filter(
        (argument) =>
          String(field.args.find((one) => one.name === argument.name)?.type) !== String(argument.type),
      )
      .map((argument) => `${wanted.name}.${name}(${argument.name})`);
  });
}

test('every type, field, argument and input field that clients ask for is there, and of their type', () => {
  const types = Object.values(asked.getTypeMap()).filter(
    (type) => !type.name.startsWith('__') && !isSpecifiedScalarType(type),
  );
  assert.ok(types.length > 100);
  const lacking = types.flatMap((type) => missing(type, ours.getType(type.name)));
  assert.deepEqual(lacking, []);
});

test('what clients may ask without a key, they may', async () => {
  const open = [
    'gpuTypes { id }',
    'cpuFlavors { id }',
    'cpuTypes { id }',
    'dataCenters { id }',
    'countryCodes',
    'listings { id }',
    'listing(id: "echo") { id }',
    'listingFromRepo(repoOwner: "berth", repoName: "echo") { id }',
    'allAiApiPublicConfigs { id }',
  ];
  for (const query of open)
    assert.deepEqual((await berth.ask(`{ ${query} }`, { key: null })).errors, [], query);
  assert.deepEqual(
    (await berth.ask('mutation { createFlashAuthRequest { id status } }', { key: null })).errors,
    [],
  );
  for (const query of [
    'myModels { id }',
    'flashApp(flashAppId: "x") { id }',
    'podTemplates { id }',
    'secret(id: "x") { id }',
  ])
    assert.equal((await berth.ask(`{ ${query} }`, { key: null })).status, 401, query);
});
