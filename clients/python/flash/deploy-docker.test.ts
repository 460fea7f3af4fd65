import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { withDocker } from '../../../packages/testing/src/with-docker.ts';
import { clearedServerFixture } from '../../../packages/testing/src/cleared-server-fixture.ts';
import { documentationCode } from '../../support/documentation-code.ts';
import { makePythonImage } from '../../support/python-image.ts';
import { installedPython } from '../python-programs.ts';
import { flashEnvironment } from './flash-environment.ts';
import { waitFor } from '../../../packages/testing/src/wait-for.ts';

const python = installedPython('flash');
const run = promisify(execFile);
const LIMIT_MS = 120_000;

await withDocker((host) => {
  describe('flash deploy, on Docker', () => {
    const fixture = clearedServerFixture({ BERTH_DOCKER: host });
    const home = mkdtempSync(join(tmpdir(), 'berth-flash-'));
    let image: Awaited<ReturnType<typeof makePythonImage>>;
    before(async () => {
      image = await makePythonImage(
        host,
        `localhost/berth-flash-cpu:p${process.pid}`,
        'flash',
        readFileSync(new URL('deployed-worker.py', import.meta.url), 'utf8'),
      );
      await waitFor('DOCKER-1 is there', async () =>
        (await fixture.operator.call('GET', '/v2/catalog/datacenters')).text.includes('DOCKER-1'),
      );
    });
    after(async () => {
      rmSync(home, { recursive: true });
      await image.remove();
    });

    test('its container finds the build, with a worker that stands ready too', async () => {
      const folder = join(home, 'greetings');
      mkdirSync(folder);
      writeFileSync(
        join(folder, 'main.py'),
        documentationCode('flash.md', 'python', 0, fixture.server).replace(
          'workers=(0, 1)',
          'workers=(1, 1)',
        ),
      );
      const env = {
        PATH: `${dirname(python.path)}:${process.env['PATH']}`,
        HOME: home,
        ...flashEnvironment(fixture.server),
        FLASH_CPU_IMAGE: image.name,
        FLASH_NO_UPDATE_CHECK: '1',
      };
      await run('flash', ['deploy'], { cwd: folder, env, timeout: LIMIT_MS });
      const { stdout } = await run('python', ['main.py', 'world'], { cwd: folder, env, timeout: LIMIT_MS });
      assert.equal(stdout.trim(), "{'greeting': 'hello world'}");
    });
  });
});
