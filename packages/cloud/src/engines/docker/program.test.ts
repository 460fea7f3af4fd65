import assert from 'node:assert/strict';
import { test } from 'node:test';
import { placesOf } from './program.ts';

test('a program is looked for as a container would', () => {
  assert.deepEqual(placesOf('node', '/work', '/usr/bin:bin'), ['/usr/bin/node', '/work/bin/node']);
  assert.deepEqual(placesOf('./run.sh', '/work', '/bin'), ['/work/run.sh']);
  assert.deepEqual(placesOf('/run.sh', '/work', '/bin'), ['/run.sh']);
});
