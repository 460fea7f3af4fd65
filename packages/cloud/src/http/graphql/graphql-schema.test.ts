import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { printSchema, validateSchema } from 'graphql';
import { baseTypesModule } from './graphql-base-types.ts';
import type { GraphqlModule } from './graphql-module.ts';
import { buildExecutableSchema } from './graphql-schema.ts';

const ping: GraphqlModule = {
  sdl: 'extend type Query { ping: String } extend type Mutation { pong: Void }',
  publicResolvers: { Query: { ping: () => 'pong' } },
  authenticatedResolvers: { Mutation: { pong: () => null } },
};

describe('the pieces of the schema', () => {
  test('become one schema', () => {
    const { schema, publicFields } = buildExecutableSchema([
      baseTypesModule,
      ping,
      { sdl: 'extend type Query { more: [Int] }', authenticatedResolvers: { Query: { more: () => [1] } } },
    ]);
    assert.deepEqual(validateSchema(schema), []);
    assert.match(printSchema(schema), /type Query \{\s+ping: String\s+more: \[Int\]\s+\}/);
    assert.deepEqual([...publicFields.query], ['__schema', '__type', '__typename', 'ping']);
    assert.deepEqual([...publicFields.mutation], ['__schema', '__type', '__typename']);
  });

  test('do not fit where code has no field or a root field has no code', () => {
    assert.throws(
      () =>
        buildExecutableSchema([
          baseTypesModule,
          ping,
          { sdl: '', publicResolvers: { Query: { pang: () => null } } },
        ]),
      /code for Query\.pang, which the schema does not have/,
    );
    assert.throws(
      () =>
        buildExecutableSchema([
          baseTypesModule,
          ping,
          { sdl: '', fieldResolvers: { Nothing: { at: () => null } } },
        ]),
      /Nothing\.at/,
    );
    assert.throws(
      () => buildExecutableSchema([baseTypesModule, ping, { sdl: 'extend type Query { pang: String }' }]),
      /Query\.pang has no code behind it/,
    );
  });
});
