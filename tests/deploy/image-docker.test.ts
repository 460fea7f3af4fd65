import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { createApiClient } from '../../packages/testing/src/api-client.ts';
import type { ApiClient } from '../../packages/testing/src/api-client.ts';
import { deployHandler } from '../../packages/testing/src/deploy-handler.ts';
import { freePort } from '../../packages/testing/src/free-port.ts';
import { ROOT_KEY } from '../../packages/testing/src/server-process.ts';
import { importImage, withKubernetes } from '../../packages/testing/src/kubernetes/with-kubernetes.ts';
import { createTemporaryFolder } from '../../packages/testing/src/temporary-folder.ts';
import { pageBlock } from '../docs/pages.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';
import { composeSuite } from './compose.suite.ts';
import { installedChartSuite } from './chart-installed.suite.ts';

const MAX_BYTES = 250_000_000;
const IMAGE = 'berth:test';
const root = fileURLToPath(new URL('../..', import.meta.url));
const execute = promisify(execFile);
/** Minutes, and all packages from the registry: not part of every run. */
const skip = process.env['BERTH_REQUIRE_IMAGE'] === '1' ? false : 'BERTH_REQUIRE_IMAGE=1 builds the image';

const docker = async (...args: string[]): Promise<string> => {
  const env = { ...process.env, DOCKER_HOST: process.env['BERTH_TEST_DOCKER_HOST'], DOCKER_BUILDKIT: '0' };
  const { stdout } = await execute('docker', args, { cwd: root, env, maxBuffer: 64_000_000 }).catch(
    (error: { stdout: string; stderr: string }) =>
      assert.fail(`docker ${args[0]} failed: ${(error.stdout + error.stderr).slice(-4000)}`),
  );
  return stdout.trim();
};

describe('the container image', { skip, timeout: 900_000 }, () => {
  const name = `berth-image-${process.pid}`;
  let client: ApiClient;
  /** Runs a command of the documentation, with the image of this test. */
  const follow = async (command: string): Promise<void> => {
    const script = `docker() { if [ "$1" = build ]; then command docker build --network=host "\${@:2}"; else command docker "$@"; fi; }
${command.replaceAll(/\bberth( \.)?$/gm, `${IMAGE}$1`)}`;
    const env = { ...process.env, DOCKER_HOST: process.env['BERTH_TEST_DOCKER_HOST'], DOCKER_BUILDKIT: '0' };
    await execute('bash', ['--norc', '-ec', script], { cwd: root, env, maxBuffer: 64_000_000 });
  };
  const inspect = <T>(what: string, format: string): Promise<T> =>
    docker('inspect', '--format', `{{json ${format}}}`, what).then((text) => JSON.parse(text) as T);

  before(async () => {
    const env = { ...process.env, DOCKER_HOST: process.env['BERTH_TEST_DOCKER_HOST'] };
    await execute(join(root, 'tests/deploy/base-images.sh'), [process.execPath], { env });
    const port = await freePort();
    const [build = '', run = ''] = pageBlock('docs/deploy.md', 'docker build -f').trim().split('\n');
    await follow(build);
    await follow(
      run
        .replace('--name berth', `--name ${name}`)
        .replace('8484:8484', `127.0.0.1:${port}:8484`)
        .replace('berth-data:', `${name}:`)
        .replace('BERTH_ROOT_KEY=…', `BERTH_ROOT_KEY=${ROOT_KEY}`),
    );
    client = createApiClient(`http://127.0.0.1:${port}`, ROOT_KEY);
  });
  after(async () => {
    await docker('rm', '-f', '-v', name).catch(() => undefined);
    await docker('volume', 'rm', name).catch(() => undefined);
  });

  test('it is small, runs as a user without rights, and keeps everything in /data', async () => {
    assert.ok(
      (await inspect<number>(IMAGE, '.Size')) < MAX_BYTES,
      `${await inspect<number>(IMAGE, '.Size')} bytes`,
    );
    assert.equal(await inspect<string>(IMAGE, '.Config.User'), '10001:10001');
    assert.equal(await docker('exec', name, 'stat', '-c', '%a %u', '/data'), '700 10001');
  });

  test('it becomes healthy, and runs a job', async () => {
    await waitFor(
      'it is healthy',
      async () => (await inspect<string>(name, '.State.Health.Status')) === 'healthy',
      60_000,
    );
    const endpoint = await deployHandler(
      client,
      'upper',
      'export default ({ input }) => input.toUpperCase();',
    );
    const { body, text } = await client.call<{ output: string }>(
      'POST',
      `/v2/${endpoint}/runsync?wait=60000`,
      { input: 'hello' },
    );
    assert.equal(body.output, 'HELLO', text);
  });

  test('a stop ends it within its time, and a start finds everything again', async () => {
    await docker('stop', '-t', '20', name);
    assert.equal(await inspect<number>(name, '.State.ExitCode'), 0);
    await docker('start', name);
    await waitFor('the endpoint is there', async () =>
      (await client.call('GET', '/v2/serverless').catch(() => undefined))?.text.includes('upper'),
    );
  });

  test('an offline bundle brings the image and the chart to another machine', async () => {
    const folder = createTemporaryFolder('offline', { empty: '' });
    const env = { ...process.env, DOCKER_HOST: process.env['BERTH_TEST_DOCKER_HOST'] };
    try {
      const bundle = pageBlock('docs/deploy.md', 'deploy/offline').trim();
      await follow(`${bundle.replace(' berth', ` ${folder.path}/berth`)} ${IMAGE}`);
      await docker('rm', '-f', '-v', name);
      await docker('rmi', IMAGE);
      const load = pageBlock('docs/deploy.md', 'tar xzf');
      await execute('bash', ['--norc', '-ec', load], { env, cwd: folder.path });
      assert.equal(await inspect<string>(IMAGE, '.Config.User'), '10001:10001');
      assert.match(
        (await execute('ls', [join(folder.path, 'berth-offline/charts')])).stdout,
        /^berth-.*\.tgz$/m,
      );
    } finally {
      folder.remove();
    }
  });
});

if (!skip) {
  composeSuite(IMAGE);
  await withKubernetes((cluster) =>
    installedChartSuite(cluster, async () => {
      const folder = createTemporaryFolder('image', { empty: '' });
      try {
        const archive = join(folder.path, 'berth.tar');
        await docker('save', '-o', archive, IMAGE);
        await importImage(cluster, archive);
      } finally {
        folder.remove();
      }
      return IMAGE;
    }),
  );
}
