import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setDefaultCACertificates } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createApiClient } from '../../packages/testing/src/api-client.ts';
import type { ApiClient } from '../../packages/testing/src/api-client.ts';
import { deployHandler } from '../../packages/testing/src/deploy-handler.ts';
import { freePort } from '../../packages/testing/src/free-port.ts';
import { ROOT_KEY } from '../../packages/testing/src/server-process.ts';
import { createTemporaryFolder } from '../../packages/testing/src/temporary-folder.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';
import { pageBlock } from '../docs/pages.ts';
import { COMPOSE, goProgram } from './go-program.ts';

const execute = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const deploy = join(root, 'deploy');
const composeProgram = await goProgram(COMPOSE.name, COMPOSE.module, { timeoutMs: 900_000 });
const program = 'path' in composeProgram ? composeProgram.path : '';
const SOCKET = 'unix://';
const PASSWORD = 'a password: with / and @';

/** deploy/compose.yaml as it is, apart from the ports of this machine on which Caddy listens. */
export function composeSuite(berthImage: string): void {
  const skip = 'reason' in composeProgram && composeProgram.reason;
  describe('Docker Compose', { skip, timeout: 600_000 }, () => {
    const project = `berth-compose-${process.pid}`;
    const host = process.env['BERTH_TEST_DOCKER_HOST'] ?? `${SOCKET}/var/run/docker.sock`;
    const folder = createTemporaryFolder('compose', { empty: '' });
    let env: NodeJS.ProcessEnv;
    let client: ApiClient;
    const compose = async (...args: string[]): Promise<string> => {
      return (
        await execute(program, args, { env, cwd: deploy }).catch((error: { stderr: string }) =>
          assert.fail(`docker compose ${args[0]} failed: ${error.stderr.slice(-4000)}`),
        )
      ).stdout;
    };

    before(async () => {
      const images = join(deploy, '../tests/deploy/compose-images.sh');
      await execute(images, [], { env: { ...process.env, DOCKER_HOST: host } });
      const socket = host.slice(SOCKET.length);
      const port = await freePort();
      folder.write({
        'ports.yaml': `services:\n  caddy:\n    ports: !override ["127.0.0.1:${port}:443"]\n`,
      });
      env = {
        ...process.env,
        DOCKER_HOST: host,
        DOCKER_SOCKET: socket,
        DOCKER_GROUP: String(statSync(socket).gid),
        BERTH_IMAGE: berthImage,
        BERTH_ROOT_KEY: ROOT_KEY,
        BERTH_DOMAIN_NAME: 'localhost',
        COMPOSE_FILE: ['compose.yaml', join(folder.path, 'ports.yaml')].join(':'),
        COMPOSE_PROJECT_NAME: project,
        BERTH_WORKER_ADDRESS: await bridgeAddress(host),
        POSTGRES_PASSWORD: PASSWORD,
        POSTGRES_IMAGE: 'berth-test-postgres',
        CADDY_IMAGE: 'berth-test-caddy',
      };
      await startAsDocumented(env, socket);
      client = createApiClient(`https://localhost:${port}`, ROOT_KEY);
    });
    after(async () => {
      if (env !== undefined) await compose('down', '--volumes', '--timeout', '5').catch(() => undefined);
      folder.remove();
    });

    test('Berth answers behind Caddy, and runs a job as a process and as a container', async () => {
      const certificate = '/data/caddy/pki/authorities/local/root.crt';
      await waitFor(
        'Caddy has a certificate',
        () =>
          compose('exec', '-T', 'caddy', 'cat', certificate).then(
            (pem) => (setDefaultCACertificates([pem]), true),
            () => false,
          ),
        60_000,
      );
      await waitFor(
        'Berth is ready',
        async () => (await client.call('GET', '/readyz').catch(() => undefined))?.status === 200,
        60_000,
      );
      for (const dataCenterIds of [['LOCAL-1'], ['DOCKER-1']]) {
        const name = `upper-${dataCenterIds[0]!.toLowerCase()}`;
        const handler = 'export default ({ input }) => input.toUpperCase();';
        const endpoint = await deployHandler(client, name, handler, { dataCenterIds });
        const path = `/v2/${endpoint}/runsync?wait=90000`;
        const { body, text } = await client.call<{ output: string }>('POST', path, { input: 'hello' });
        assert.equal(body.output, 'HELLO', `${name}: ${text}`);
      }
    });

    test('what was created is there again after all of it was stopped and started', async () => {
      await compose('down', '--timeout', '20');
      await compose('up', '--detach', '--wait', '--pull', 'never');
      await waitFor(
        'the endpoint is there',
        async () =>
          (await client.call('GET', '/v2/serverless').catch(() => undefined))?.text.includes(
            'upper-docker-1',
          ),
        60_000,
      );
    });
  });
}

/** As docs/deploy.md says, with a name of this machine. Nothing can be pulled here. */
async function startAsDocumented(env: NodeJS.ProcessEnv, socket: string): Promise<void> {
  const block = pageBlock('docs/deploy.md', 'cd deploy')
    .replace('berth.example.com', 'localhost')
    .replace('POSTGRES_PASSWORD=…', `POSTGRES_PASSWORD='${PASSWORD}'`)
    .replace('BERTH_ROOT_KEY=…', `BERTH_ROOT_KEY=${ROOT_KEY}`)
    .replace('/var/run/docker.sock', socket);
  const script = `docker() { shift; "${program}" "$@" --wait --pull never; }\n${block}`;
  await execute('bash', ['--norc', '-ec', script], { env, cwd: root });
}

/** Where containers reach ports of the machine. */
async function bridgeAddress(host: string): Promise<string> {
  const format = '{{(index .IPAM.Config 0).Gateway}}';
  const env = { ...process.env, DOCKER_HOST: host };
  const { stdout } = await execute('docker', ['network', 'inspect', 'bridge', '--format', format], { env });
  return stdout.trim();
}
