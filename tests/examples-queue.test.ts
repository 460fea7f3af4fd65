import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { EXAMPLES_FOLDER, exampleNames, examplesFixture } from '../packages/testing/src/examples-fixture.ts';
import type { ExampleJobView } from '../packages/testing/src/examples-fixture.ts';
import { createTemporaryFolder } from '../packages/testing/src/temporary-folder.ts';
import { waitUntilPasses } from '../packages/testing/src/wait-for.ts';

const lines = (text: string): Record<string, unknown>[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe('the examples of queue endpoints', () => {
  const fixture = examplesFixture();
  const { berth } = fixture;
  const deploy = async (example: string, ...options: string[]): Promise<{ id: string }> => {
    const { code, json, stderr } = await berth<{ id: string }>(
      'deploy',
      join(EXAMPLES_FOLDER, example),
      ...options,
    );
    assert.equal(code, 0, stderr);
    return json;
  };

  test('each has a page with the commands that run it', () => {
    for (const name of exampleNames()) {
      const page = readFileSync(join(EXAMPLES_FOLDER, name, 'README.md'), 'utf8');
      assert.match(page, new RegExp(`npx berth (deploy (examples/${name}|upper)|pod create)`), name);
      assert.match(page, /npx berth run|curl |npx node|berth pod logs/, name);
    }
  });

  test('echo answers what it was asked, and says so in its log', async () => {
    await deploy('echo', '--min', '1', '--wait');
    const ran = await berth<ExampleJobView>('run', 'echo', '{"input": {"message": "hello"}}', '--sync');
    assert.deepEqual(
      [ran.code, ran.json.status, ran.json.output],
      [0, 'COMPLETED', { message: 'hello' }],
      ran.stderr,
    );
    const { stdout } = await berth('logs', 'echo');
    assert.ok(
      lines(stdout).some(({ line }) => line === `job ${ran.json.id}: {"message":"hello"}`),
      stdout,
    );
    assert.ok(lines(stdout).some(({ source }) => source === 'system'));
    const one = await berth('logs', 'echo', '--worker', String(ran.json.workerId), '--tail', '1');
    assert.equal(lines(one.stdout).length, 1);
  });

  test('the examples are there as images too', async () => {
    const { json } = await berth<{ image: string; id: string }>(
      'deploy',
      'local/echo',
      '--name',
      'ready-made',
    );
    assert.equal(json.image, 'local/echo');
    const ran = await berth<ExampleJobView>('run', json.id, '[1, 2]', '--sync');
    assert.deepEqual([ran.json.status, ran.json.output], ['COMPLETED', [1, 2]]);
  });

  test('streaming shows each word as it comes', async () => {
    await deploy('streaming');
    const { code, stdout, stderr } = await berth(
      'run',
      'streaming',
      '{"input": {"text": "one two three", "pauseMs": 5}}',
      '--stream',
    );
    assert.equal(code, 0, stderr);
    const [one, two, three, end] = lines(stdout);
    assert.deepEqual(
      [one, two, three],
      ['one', 'two', 'three'].map((word, index) => ({ output: { index, word } })),
    );
    assert.equal(end?.['status'], 'COMPLETED');
  });

  test('progress reports its progress, and stops when it is cancelled', async () => {
    const { id } = await deploy('progress');
    const client = fixture.server.client();
    const job = (await berth<ExampleJobView>('run', 'progress', '{"input": {"steps": 1000, "stepMs": 20}}'))
      .json;
    await waitUntilPasses(async () => {
      const { body } = await client.call<ExampleJobView>('GET', `/v2/${id}/status/${job.id}`);
      assert.deepEqual(
        [body.status, (body.output as { of?: number } | undefined)?.of],
        ['IN_PROGRESS', 1000],
      );
    }, 20_000);
    assert.equal(
      (await client.call<ExampleJobView>('POST', `/v2/${id}/cancel/${job.id}`)).body.status,
      'CANCELLED',
    );
    const short = await berth<ExampleJobView>(
      'run',
      'progress',
      '{"input": {"steps": 3, "stepMs": 1}}',
      '--sync',
    );
    assert.deepEqual([short.json.status, short.json.output], ['COMPLETED', { baked: 3 }]);
  });

  test('failing fails in each of its ways, and the command with it', async () => {
    await deploy('failing');
    const thrown = await berth<ExampleJobView>('run', 'failing', '{"input": {"how": "throw"}}', '--sync');
    assert.deepEqual([thrown.code, thrown.json.status], [1, 'FAILED']);
    assert.match(thrown.stderr, /is FAILED: the handler threw this/);
    const answered = await berth<ExampleJobView>('run', 'failing', '{"input": {"how": "error"}}', '--sync');
    assert.deepEqual([answered.code, answered.json.error], [1, 'the handler says no']);
    const lost = await berth<ExampleJobView>('run', 'failing', '{"input": {"how": "exit"}}', '--sync');
    assert.deepEqual([lost.code, lost.json.status], [1, 'FAILED']);
  });

  test('the worker of the Dockerfile speaks the protocol without a library', async () => {
    const folder = createTemporaryFolder('upper', {
      'worker.mjs': readFileSync(join(EXAMPLES_FOLDER, 'dockerfile/worker.mjs'), 'utf8'),
      'berth.json': '{"command": ["node", "worker.mjs"]}',
    });
    await berth('deploy', folder.path);
    for (const text of ['hello', 'again']) {
      const ran = await berth<ExampleJobView>('run', 'upper', JSON.stringify({ input: { text } }), '--sync');
      assert.deepEqual(
        [ran.json.status, (ran.json.output as { text: string }).text],
        ['COMPLETED', text.toUpperCase()],
        ran.stderr,
      );
    }
    folder.remove();
    const refused = await berth('deploy', join(EXAMPLES_FOLDER, 'dockerfile'));
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /docker build -t NAME/);
  });
});
