import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';

const module = new URL('./log.ts', import.meta.url).href;

/** The standard error of a separate process that logs this. */
function logged(options: { level: string; format: string }, statements: string): string {
  const code =
    `import { createLog } from ${JSON.stringify(module)}; const log = ` +
    `createLog(${JSON.stringify(options)}); ${statements}`;
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
  assert.equal(stdout, '', 'standard output is the program’s own');
  return stderr;
}

describe('the log', () => {
  test('is one JSON object per line, with time, level and message', () => {
    const lines = logged(
      { level: 'info', format: 'json' },
      `log.info({ port: 1 }, 'up'); log.debug('quiet'); log.warn('careful');`,
    )
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.deepEqual(
      lines.map(({ level, msg, port }) => [level, msg, port]),
      [
        ['info', 'up', 1],
        ['warn', 'careful', undefined],
      ],
    );
    assert.ok(lines.every(({ time }) => !Number.isNaN(Date.parse(String(time)))));
  });

  test('in text form is short and shows the stack of an error', () => {
    const text = logged(
      { level: 'info', format: 'text' },
      `log.info({ port: 1 }, 'up'); log.error({ err: new Error('broken') }, 'failed');`,
    );
    assert.match(text, /^\d\d:\d\d:\d\d info {2}up \{"port":1\}\n/);
    assert.match(text, /error failed\nError: broken\n {4}at /);
  });

  test('hides secrets at any depth', () => {
    const secret =
      `{ authorization: 'hunter2', apiKey: 'hunter2', api_key: 'hunter2', key: 'hunter2', password: ` +
      `'hunter2', secret: 'hunter2', value: 'hunter2', env: { A: 'hunter2' }, token: 'hunter2' }`;
    for (const format of ['json', 'text']) {
      const text = logged(
        { level: 'trace', format },
        `log.info(${secret}); log.info({ body: ${secret} }); log.info({ request: { bodies: [${secret}] ` +
          `} }); log.error({ err: Object.assign(new Error('failed'), ${secret}, { rawPacket: ` +
          `Buffer.from('hunter2') }) });`,
      );
      assert.doesNotMatch(text, /hunter2|104,117,110/);
      assert.match(text, /\(hidden\)/);
      assert.equal(text.includes('(7 bytes)'), format === 'json');
      assert.match(text, /Error: failed/);
    }
  });

  test('accepts values of any shape', () => {
    const text = logged(
      { level: 'trace', format: 'json' },
      'const round = {}; round.round = round; log.info({ round, at: new Date(0), none: null, nothing: ' +
        `undefined, view: new Uint16Array(2), map: new Map([[1, 2]]), big: 1n }, 'all'); ` +
        `log.info(undefined); log.info(null); log.info('plain'); log.error(new Error('bare'));`,
    );
    assert.equal(text.trim().split('\n').length, 5);
    assert.match(text, /1970-01-01[^]*"msg":"all"[^]*"msg":"bare"/);
  });
});
