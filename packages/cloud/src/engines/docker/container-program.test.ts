import assert from 'node:assert/strict';
import { test } from 'node:test';
import { candidatePaths } from './container-program.ts';

test('a program is searched in the PATH of the container', () => {
  assert.deepEqual(candidatePaths('node', '/work', '/usr/bin:bin'), ['/usr/bin/node', '/work/bin/node']);
  assert.deepEqual(candidatePaths('./run.sh', '/work', '/bin'), ['/work/run.sh']);
  assert.deepEqual(candidatePaths('/run.sh', '/work', '/bin'), ['/run.sh']);
});
