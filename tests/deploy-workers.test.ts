import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { examplesFixture } from '../packages/testing/src/examples-fixture.ts';
import type { ExampleJobView } from '../packages/testing/src/examples-fixture.ts';
import { createTemporaryFolder } from '../packages/testing/src/temporary-folder.ts';
import { BERTH_COMMAND } from '../packages/testing/src/berth-command.ts';
import { waitUntilPasses } from '../packages/testing/src/wait-for.ts';

interface Deployed {
  id: string;
  created: boolean;
  ready?: boolean;
  reason?: string;
}

const handler = (mark: string): string =>
  `export default (job) => { process.stdout.write('did ' + JSON.stringify(job.input) + '\\n'); return ` +
  `{ mark: '${mark}', input: job.input }; };\n`;

describe('berth deploy, with workers', () => {
  const fixture = examplesFixture();
  const { berth } = fixture;

  test('--wait waits for a worker of the new release, and the next job runs on it', async () => {
    const folder = createTemporaryFolder('app', { 'handler.js': handler('first') });
    const first = await berth<Deployed>('deploy', folder.path, '--min', '1', '--wait');
    assert.deepEqual([first.code, first.json.ready], [0, true], first.stderr);
    // Piped as it is, it says what it waits for.
    assert.match(first.stderr, /\nwaiting for a worker\n {2}\S/);
    folder.write({ 'handler.js': handler('second') });
    const second = await berth<Deployed>('deploy', folder.path, '--wait');
    assert.deepEqual(
      [second.json.id, second.json.created, second.json.ready],
      [first.json.id, false, true],
      second.stderr,
    );
    await waitUntilPasses(async () => {
      const ran = await berth<ExampleJobView>('run', 'app', '1', '--sync');
      assert.deepEqual(ran.json.output, { mark: 'second', input: 1 });
    });
    folder.remove();
  });

  test('--wait with nothing to wait for reports that', async () => {
    const folder = createTemporaryFolder('lazy', { 'handler.js': handler('lazy') });
    const { code, json } = await berth<Deployed>('deploy', folder.path, '--wait');
    assert.deepEqual([code, json.ready], [0, false]);
    assert.match(json.reason ?? '', /--min is 0/);
    folder.remove();
  });

  test('--wait for a worker that cannot start fails with what it wrote', async () => {
    const folder = createTemporaryFolder('broken', {
      'handler.js': "throw new Error('the model file is missing');\n",
    });
    const { code, stdout, stderr } = await berth(
      'deploy',
      folder.path,
      '--min',
      '1',
      '--wait',
      '--timeout',
      '4',
    );
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /is deployed, but .*: .*/);
    assert.match(stderr, /the model file is missing/);
    folder.remove();
  });

  test('a job comes from a file or from the standard input too', async () => {
    const folder = createTemporaryFolder('inputs', { 'handler.js': handler('x') });
    await berth('deploy', folder.path);
    const file = join(folder.path, 'job.json');
    writeFileSync(file, '{"input": {"from": "file"}}');
    const fromFile = await berth<ExampleJobView>('run', 'inputs', `@${file}`, '--sync');
    assert.deepEqual(fromFile.json.output, { mark: 'x', input: { from: 'file' } });
    const child = spawn(
      BERTH_COMMAND,
      ['run', 'inputs', '-', '--sync', '--json', '--data', fixture.database.data],
      {
        stdio: ['pipe', 'pipe', 'inherit'],
      },
    );
    let printed = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
    child.stdin.end('"from a pipe"');
    await new Promise((resolve) => child.on('close', resolve));
    assert.deepEqual((JSON.parse(printed) as ExampleJobView).output, { mark: 'x', input: 'from a pipe' });
    folder.remove();
  });

  test('logs of one job, and logs that are followed while workers come and go', async () => {
    const folder = createTemporaryFolder('talks', { 'handler.js': handler('x') });
    await berth('deploy', folder.path);
    const following = spawn(
      BERTH_COMMAND,
      ['logs', 'talks', '-f', '--json', '--data', fixture.database.data],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    let printed = '';
    following.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
    const [one, two] = [
      await berth<ExampleJobView>('run', 'talks', '"one"', '--sync'),
      await berth<ExampleJobView>('run', 'talks', '"two"', '--sync'),
    ];
    await waitUntilPasses(() => {
      for (const word of ['one', 'two']) assert.ok(printed.includes(`did \\"${word}\\"`), printed);
    });
    following.kill('SIGTERM');
    const { stdout, code, stderr } = await berth('logs', 'talks', '--job', one.json.id);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /did \\"one\\"/);
    assert.ok(!stdout.includes(two.json.id), stdout);
    const unknown = await berth('logs', 'talks', '--worker', 'nobody');
    assert.equal(unknown.code, 1);
    await berth('deploy', folder.path, '--max', '0');
    await waitUntilPasses(async () => {
      const { json } = await berth<{ endpoints: { name: string; workers: { total: number } }[] }>('ps');
      assert.equal(json.endpoints.find(({ name }) => name === 'talks')?.workers.total, 0);
    }, 20_000);
    const after = await berth('logs', 'talks');
    assert.match(after.stdout, new RegExp(String(two.json.workerId)));
    folder.remove();
  });
});
