import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { EXAMPLES_FOLDER, examplesFixture } from '../packages/testing/src/examples-fixture.ts';
import type { ExampleJobView } from '../packages/testing/src/examples-fixture.ts';

const hasPackage = spawnSync('python3', ['-c', 'import runpod'], { stdio: 'ignore' }).status === 0;

describe('the example in Python', {
  skip:
    !hasPackage &&
    'it takes minutes to install the runpod package where pip has never done it; install it into python3 to run this',
}, () => {
  const { berth } = examplesFixture();

  test('runs a handler of the runpod package, unchanged', async () => {
    const deployed = await berth(
      'deploy',
      join(EXAMPLES_FOLDER, 'python-echo'),
      '--min',
      '1',
      '--wait',
      '--timeout',
      '200',
    );
    assert.equal(deployed.code, 0, deployed.stderr);
    const ran = await berth<ExampleJobView>(
      'run',
      'python-echo',
      '{"input": {"message": "hello"}}',
      '--sync',
    );
    assert.deepEqual(
      [ran.json.status, ran.json.output],
      ['COMPLETED', { message: 'hello', reversed: 'olleh' }],
      ran.stderr,
    );
    assert.match((await berth('logs', 'python-echo')).stdout, /job .*: hello/);
  });
});
