import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { PodTokens } from './pod-tokens.ts';

describe('pod tokens', () => {
  const masterKey = randomBytes(32);
  const tokens = new PodTokens(masterKey);

  test('give the id of their pod, and stay the same after a restart', () => {
    assert.equal(tokens.podIdFromToken(tokens.tokenFor('abc123')), 'abc123');
    assert.equal(new PodTokens(masterKey).tokenFor('abc123'), tokens.tokenFor('abc123'));
  });

  test('are rejected if forged, changed or from another installation', () => {
    const token = tokens.tokenFor('abc123');
    for (const wrong of [
      undefined,
      '',
      'rpp_',
      'rpa_x',
      token.slice(0, -1),
      `${token}x`,
      token.replace('abc123', 'abc124'),
      new PodTokens(randomBytes(32)).tokenFor('abc123'),
    ])
      assert.equal(tokens.podIdFromToken(wrong), undefined);
  });
});
