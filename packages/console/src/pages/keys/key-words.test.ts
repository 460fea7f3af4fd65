import assert from 'node:assert/strict';
import { test } from 'node:test';
import { scopeWords } from './key-words.ts';

const NOTHING = { rest: 'NONE', graphql: 'NONE', serverless: 'NONE' } as const;

test('a restricted key says what it may do, and for how many endpoints', () => {
  const words = (scopes: object, endpoints: string[] | null = null): string =>
    scopeWords({ access: 'RESTRICTED', scopes: { ...NOTHING, ...scopes }, endpoints });
  assert.equal(words({ serverless: 'WRITE' }), 'calls all endpoints');
  assert.equal(words({ serverless: 'WRITE' }, ['a']), 'calls 1 endpoint');
  assert.equal(words({ serverless: 'READ', rest: 'READ' }, []), 'reads jobs of 0 endpoints, reads resources');
  assert.equal(words({ rest: 'WRITE', graphql: 'WRITE' }), 'changes resources, uses GraphQL');
  assert.equal(words({}), 'nothing');
  assert.equal(scopeWords({ access: 'ALL', scopes: NOTHING, endpoints: null }), '');
});
