import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, test } from 'node:test';
import { printSchema, validateSchema } from 'graphql';
import { common } from './common.ts';
import type { Part } from './part.ts';
import { assemble } from './schema.ts';

const ping: Part = {
  sdl: 'extend type Query { ping: String } extend type Mutation { pong: Void }',
  open: { Query: { ping: () => 'pong' } },
  keyed: { Mutation: { pong: () => null } },
};

describe('the pieces of the schema', () => {
  test('become one schema', () => {
    const { schema, open } = assemble([
      common,
      ping,
      { sdl: 'extend type Query { more: [Int] }', keyed: { Query: { more: () => [1] } } },
    ]);
    assert.deepEqual(validateSchema(schema), []);
    assert.match(printSchema(schema), /type Query \{\s+ping: String\s+more: \[Int\]\s+\}/);
    assert.deepEqual([...open.query], ['__schema', '__type', '__typename', 'ping']);
    assert.deepEqual([...open.mutation], ['__schema', '__type', '__typename']);
  });

  test('do not fit where code has no field or a root field has no code', () => {
    assert.throws(
      () => assemble([common, ping, { sdl: '', open: { Query: { pang: () => null } } }]),
      /code for Query\.pang, which the schema does not have/,
    );
    assert.throws(
      () => assemble([common, ping, { sdl: '', fields: { Nothing: { at: () => null } } }]),
      /Nothing\.at/,
    );
    assert.throws(
      () => assemble([common, ping, { sdl: 'extend type Query { pang: String }' }]),
      /Query\.pang has no code behind it/,
    );
  });
});

test('a server that nobody asks never loads the GraphQL library', () => {
  const face = new URL('face.ts', import.meta.url).href;
  const script = `await import(${JSON.stringify(face)}); const { createRequire } = await import('node:module'); process.stdout.write(Object.keys(createRequire(import.meta.url).cache).filter((file) => file.includes('/graphql/')).join());`;
  assert.equal(
    execFileSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' }),
    '',
  );
});
