import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WorkerTokens } from './worker-tokens.ts';

const tokens = new WorkerTokens(Buffer.alloc(32, 1));

test("a worker's token is valid for its endpoint and worker id, on every server with the same master key", () => {
  const token = tokens.tokenFor('e', 'w');
  assert.ok(tokens.isToken(token));
  assert.equal(tokens.matches(token, 'e', 'w'), true);
  assert.equal(new WorkerTokens(Buffer.alloc(32, 1)).matches(token, 'e', 'w'), true);
});

test('a worker token is valid for its own endpoint and worker only', () => {
  const token = tokens.tokenFor('e', 'w');
  for (const [endpoint, worker] of [
    ['f', 'w'],
    ['e', 'v'],
    ['', 'ew'],
    ['e\nw', ''],
    ['ew', ''],
  ] as const)
    assert.equal(tokens.matches(token, endpoint, worker), false);
  for (const other of [
    '',
    'rpw_',
    token.slice(0, -1),
    `${token}x`,
    `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`,
  ])
    assert.equal(tokens.matches(other, 'e', 'w'), false);
  assert.equal(new WorkerTokens(Buffer.alloc(32, 2)).matches(token, 'e', 'w'), false);
  assert.equal(tokens.isToken('rpa_SOMEKEY'), false);
});
