import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { createTemporaryFolder } from '../packages/testing/src/temporary-folder.ts';
import { BERTH_COMMAND, runBerth } from '../packages/testing/src/berth-command.ts';
import { waitUntilPasses } from '../packages/testing/src/wait-for.ts';

interface DevEvent {
  event: string;
  id?: string;
  message?: string;
  requestUrls?: { run: string };
  job?: { status: string; output: unknown };
  line?: string;
}

const handler = (mark: string): string =>
  `export default (job) => { process.stdout.write('hello from ${mark}\\n'); return { mark: '${mark}', ` +
  `input: job.input }; };\n`;

describe('berth dev', () => {
  test('runs a folder on a Berth of its own, anew at every change, and leaves nothing behind', async () => {
    const folder = createTemporaryFolder('devapp', { 'handler.js': handler('first') });
    const child = spawn(BERTH_COMMAND, ['dev', folder.path, '--input', '{"n": 1}', '--json'], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], BERTH_PORT: '1', BERTH_DATA: '/dev/null' },
    });
    let printed = '';
    let errors = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
    const events = (): DevEvent[] =>
      printed
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as DevEvent);
    const seen = (what: string, is: (event: DevEvent) => boolean): Promise<void> =>
      waitUntilPasses(() => assert.ok(events().some(is), `${what}\n${printed}\n${errors}`), 20_000);
    try {
      await seen('the first result', ({ event, job }) => event === 'result' && job?.status === 'COMPLETED');
      assert.deepEqual(events().find(({ event }) => event === 'result')?.job?.output, {
        mark: 'first',
        input: { n: 1 },
      });
      folder.write({ 'handler.js': handler('second') });
      await seen(
        'the second result',
        ({ event, job }) => event === 'result' && (job?.output as { mark?: string }).mark === 'second',
      );
      await seen('the log', ({ event, line }) => event === 'log' && line === 'hello from second');
      folder.write({ 'berth.json': '{"command": "not a list"}' });
      await seen(
        'the change is taken',
        ({ event }) =>
          events().filter((other) => other.event === 'deployed').length >= 3 && event === 'deployed',
      );
    } finally {
      child.kill('SIGINT');
    }
    const [code] = (await once(child, 'exit')) as [number | null];
    assert.equal(code, 0, errors);
    const url = new URL(
      events().find(({ requestUrls }) => requestUrls !== undefined)?.requestUrls?.run ?? '',
    );
    await assert.rejects(fetch(url.origin), 'its Berth is gone');
    folder.remove();
  });

  test('reports immediately what cannot run', async () => {
    const folder = createTemporaryFolder('nothing', { 'index.js': '' });
    const { code, stderr } = await runBerth(['dev', folder.path]);
    assert.equal(code, 1);
    assert.match(stderr, /has nothing to run/);
    assert.match((await runBerth(['dev', `${folder.path}/no`])).stderr, /there is no folder/);
    assert.equal((await runBerth(['dev', folder.path, '--input', '{'])).code, 2);
    folder.remove();
  });
});
