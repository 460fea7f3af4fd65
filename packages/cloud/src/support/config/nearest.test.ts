import assert from 'node:assert/strict';
import { test } from 'node:test';
import { didYouMean, nearest } from './nearest.ts';

test('finds a word with a slip in it', () => {
  const words = ['host', 'port', 'data', 'database', 'log.level'];
  assert.equal(nearest('prot', words), 'port');
  assert.equal(nearest('PORT', words), 'port');
  assert.equal(nearest('databse', words), 'database');
  assert.equal(nearest('level', words), 'log.level');
});

test('finds nothing where nothing is close', () => {
  assert.equal(nearest('xyz', ['host', 'port']), undefined);
  assert.equal(didYouMean('xyz', ['host'], '; see the list'), '; see the list');
  assert.equal(nearest('any', []), undefined);
});
