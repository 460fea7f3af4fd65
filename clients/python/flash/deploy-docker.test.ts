import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { withDocker } from '../../../tests/support/docker.ts';
import { until } from '../../../tests/support/serverless.ts';
import { clearedStage } from '../../support/cleared-stage.ts';
import { codeOf } from '../../support/pages.ts';
import { makePythonImage } from '../../support/python-image.ts';
import { pythonOf } from '../programs.ts';
import { flashEnvironment } from './environment.ts';

const python = pythonOf('flash');
const run = promisify(execFile);
const LIMIT_MS = 120_000;

await withDocker((host) => {
  describe('flash deploy, on Docker', () => {
    const stage = clearedStage({ BERTH_DOCKER: host });
    const home = mkdtempSync(join(tmpdir(), 'berth-flash-'));
    let image: Awaited<ReturnType<typeof makePythonImage>>;
    before(async () => {
      image = await makePythonImage(
        host,
        `localhost/berth-flash-cpu:p${process.pid}`,
        'flash',
        readFileSync(new URL('deployed-worker.py', import.meta.url), 'utf8'),
      );
      await until('DOCKER-1 is there', async () =>
        (await stage.operator.call('GET', '/v2/catalog/datacenters')).text.includes('DOCKER-1'),
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
        codeOf('flash.md', 'python', 0, stage.server).replace('workers=(0, 1)', 'workers=(1, 1)'),
      );
      const env = {
        PATH: `${dirname(python.path)}:${process.env['PATH']}`,
        HOME: home,
        ...flashEnvironment(stage.server),
        FLASH_CPU_IMAGE: image.name,
        FLASH_NO_UPDATE_CHECK: '1',
      };
      await run('flash', ['deploy'], { cwd: folder, env, timeout: LIMIT_MS });
      const { stdout } = await run('python', ['main.py', 'world'], { cwd: folder, env, timeout: LIMIT_MS });
      assert.equal(stdout.trim(), "{'greeting': 'hello world'}");
    });
  });
});
