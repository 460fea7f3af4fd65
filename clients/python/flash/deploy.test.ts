import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { clearedServerFixture } from '../../../packages/testing/src/cleared-server-fixture.ts';
import { documentationCode } from '../../support/documentation-code.ts';
import { installedPython } from '../python-programs.ts';
import { uploadStandInImage } from './flash-environment.ts';

const python = installedPython('flash');
const run = promisify(execFile);
const LIMIT_MS = 120_000;

describe('flash deploy', { concurrency: false }, () => {
  const fixture = clearedServerFixture();
  const home = mkdtempSync(join(tmpdir(), 'berth-flash-'));
  const folder = join(home, 'greetings');
  let env: Record<string, string>;
  before(async () => {
    mkdirSync(folder);
    const image = await uploadStandInImage(fixture.operator, python, 'flash', 'deployed-worker.py');
    env = {
      PATH: `${dirname(python.path)}:${process.env['PATH']}`,
      HOME: home,
      FLASH_CPU_IMAGE: image,
      FLASH_NO_UPDATE_CHECK: '1',
    };
  });
  after(() => rmSync(home, { recursive: true }));

  /** After the lines of the page that point flash at Berth. */
  const shell = async (command: string): Promise<string> => {
    const lines = documentationCode('flash.md', 'sh', 0, {
      url: fixture.server.url,
      key: fixture.server.key,
    });
    const { stdout, stderr } = await run('sh', ['-ec', `${lines}\n${command}`], {
      cwd: folder,
      env,
      timeout: LIMIT_MS,
    });
    return stdout + stderr;
  };
  const call = (name: string): Promise<string> => shell(`python main.py ${name}`);
  const write = async (greeting: string): Promise<void> => {
    const page = documentationCode('flash.md', 'python', 0, {
      url: fixture.server.url,
      key: fixture.server.key,
    });
    writeFileSync(join(folder, 'main.py'), page.replace('hello', greeting));
  };
  const deploy = async (greeting: string): Promise<void> => {
    await write(greeting);
    assert.match(await shell('flash deploy'), /deployed to production/);
  };

  test('builds, uploads and deploys an app, and its function is called by name', async () => {
    await write('hello');
    const { url, key } = fixture.server;
    const said = await shell(documentationCode('flash.md', 'sh', 1, { url, key }));
    assert.match(said, /deployed to production[^]*^\{'greeting': 'hello world'\}$/m);
  });

  test('a second deployment reaches the workers', async () => {
    await deploy('welcome');
    assert.match(await call('world'), /^\{'greeting': 'welcome world'\}$/m);
    const { body } = await fixture.operator.call<{ endpoints: unknown[] }>('GET', '/v2/serverless');
    assert.equal(body.endpoints.length, 1);
  });

  test('lists the app and its environment, and removes both', async () => {
    assert.match(await shell('flash app list'), /greetings/);
    assert.match(await shell('flash env list'), /production/);
    const address = `${fixture.server.url}/v2/flash/runsync`;
    const named = (name: string, key: string): Promise<Response> =>
      fetch(address, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${key}`,
          'x-flash-app': 'greetings',
          'x-flash-environment': 'production',
          'x-flash-endpoint': name,
        },
        body: '{"input":{"name":"x"}}',
      });
    assert.deepEqual(
      [
        (await named('other', fixture.server.key)).status,
        (await named('greeter', (await fixture.createAccount('stranger')).key)).status,
        (await named('greeter', 'rpa_WRONG')).status,
      ],
      [404, 404, 401],
    );
    assert.equal(
      (
        await fetch(address, {
          method: 'POST',
          headers: { authorization: `Bearer ${fixture.server.key}` },
          body: '{}',
        })
      ).status,
      400,
    );
    await shell('flash undeploy --all --force');
    await assert.rejects(call('world'), /not found in app 'greetings'/);
  });
});
