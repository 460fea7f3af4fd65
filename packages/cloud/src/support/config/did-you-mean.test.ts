import assert from 'node:assert/strict';
import { test } from 'node:test';
import { didYouMean, closestMatch } from './did-you-mean.ts';

test('finds a word with a typo', () => {
  const words = ['host', 'port', 'data', 'database', 'log.level'];
  assert.equal(closestMatch('prot', words), 'port');
  assert.equal(closestMatch('PORT', words), 'port');
  assert.equal(closestMatch('databse', words), 'database');
  assert.equal(closestMatch('level', words), 'log.level');
});

test('finds nothing if nothing is close', () => {
  assert.equal(closestMatch('xyz', ['host', 'port']), undefined);
  assert.equal(didYouMean('xyz', ['host'], '; see the list'), '; see the list');
  assert.equal(closestMatch('any', []), undefined);
});
