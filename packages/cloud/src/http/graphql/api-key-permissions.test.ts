import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { SCOPE_LEVELS } from '../../domain/records.ts';
import { parsePermissions, formatPermissions } from './api-key-permissions.ts';

const ALL_NONE = { rest: 'none', graphql: 'none', serverless: 'none' } as const;

test('the levels are words', () => {
  assert.deepEqual(parsePermissions('ALL'), { access: 'all', endpoints: null });
  assert.deepEqual(parsePermissions('READ_ONLY'), { access: 'read-only', endpoints: null });
  assert.equal(formatPermissions({ access: 'all', scopes: ALL_NONE, endpoints: null }), 'ALL');
  assert.equal(formatPermissions({ access: 'read-only', scopes: ALL_NONE, endpoints: null }), 'READ_ONLY');
});

test('what a restricted key is not granted, it may not do', () => {
  assert.deepEqual(parsePermissions('{"serverless":"read","endpoints":["a"]}'), {
    access: 'restricted',
    scopes: { ...ALL_NONE, serverless: 'read' },
    endpoints: ['a'],
  });
  assert.deepEqual(parsePermissions('{}'), { access: 'restricted', scopes: ALL_NONE, endpoints: null });
});

test('what is written reads back the same', () => {
  const grant = fc.constantFrom(...SCOPE_LEVELS);
  fc.assert(
    fc.property(
      fc.record({ rest: grant, graphql: grant, serverless: grant }, { noNullPrototype: true }),
      fc.option(fc.array(fc.string())),
      (scopes, endpoints) => {
        assert.deepEqual(parsePermissions(formatPermissions({ access: 'restricted', scopes, endpoints })), {
          access: 'restricted',
          scopes,
          endpoints,
        });
      },
    ),
    { verbose: true },
  );
});

test('anything else is refused, with the form that is wanted', () => {
  for (const text of [
    'all',
    'write',
    '[]',
    'null',
    '"ALL"',
    '{"rest":"all"}',
    '{"rest":null}',
    '{"admin":"write"}',
    '{"endpoints":"a"}',
    '{"endpoints":[1]}',
    '{"__proto__":"write"}',
  ]) {
    assert.throws(() => parsePermissions(text), /permissions must be ALL, READ_ONLY, or JSON text/, text);
  }
});
