import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readlinkSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { createApiClient } from '../../packages/testing/src/api-client.ts';
import { BERTH_COMMAND } from '../../packages/testing/src/berth-command.ts';
import { deployHandler, listWorkers } from '../../packages/testing/src/deploy-handler.ts';
import { freePort } from '../../packages/testing/src/free-port.ts';
import { processesOfInstance } from '../../packages/testing/src/pod-client.ts';
import { queueEndpointClient } from '../../packages/testing/src/queue-endpoint-client.ts';
import { ROOT_KEY } from '../../packages/testing/src/server-process.ts';
import { createTemporaryFolder } from '../../packages/testing/src/temporary-folder.ts';
import { createTestDatabase } from '../../packages/testing/src/test-database.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';
import { pageBlock } from '../docs/pages.ts';
import { leftOut } from './required-parts.ts';

const START_TIMEOUT_MS = 60_000;
const ECHO = 'export default ({ input }: { input: unknown }) => input;';

const unit = readFileSync(new URL('../../deploy/systemd/berth.service', import.meta.url), 'utf8');
const missing =
  spawnSync('systemd-analyze', ['--version']).error !== undefined &&
  leftOut('systemd-analyze', 'systemd is not installed');

test('systemd reads the service without a complaint', { skip: missing }, () => {
  // The program of this clone instead of the installed one; the rest as it is.
  const installed = unit.replace('/opt/berth/bin/berth', BERTH_COMMAND).replace(/^Documentation=.*\n/m, '');
  const folder = createTemporaryFolder('unit', { 'berth.service': installed });
  try {
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', join(folder.path, 'berth.service')], {
      encoding: 'utf8',
    });
    assert.deepEqual([status, stderr.split('\n').filter((line) => line.includes('berth.service'))], [0, []]);
  } finally {
    folder.remove();
  }
});

test('docs/deploy.md installs the service and enables it', { skip: missing }, () => {
  const folder = createTemporaryFolder('machine', { empty: '' });
  const machine = folder.path;
  // The machine is a folder, where systemd itself does not run, and the package is that of this clone.
  const block = pageBlock('docs/deploy.md', 'npm install')
    .replace('berth-cloud', resolve('packages/cloud'))
    .replaceAll(/ (\/(?:opt|etc)\/)/g, ` ${machine}$1`)
    .replace('systemctl enable --now', `systemctl --root=${machine} enable`);
  try {
    const { status, stderr } = spawnSync('bash', ['--norc', '-ec', block], { encoding: 'utf8' });
    assert.equal(status, 0, stderr);
    const enabled = join(machine, 'etc/systemd/system/multi-user.target.wants/berth.service');
    assert.equal(readlinkSync(enabled), '/etc/systemd/system/berth.service');
    assert.equal(statSync(join(machine, 'etc/berth')).mode & 0o777, 0o700);
    const [command = ''] = valuesOf('ExecStart')[0]?.split(' ') ?? [];
    assert.match(spawnSync(join(machine, command), ['--version'], { encoding: 'utf8' }).stdout, /^berth \d/);
  } finally {
    folder.remove();
  }
});

/** The values of a key of the unit. */
const valuesOf = (key: string): string[] =>
  [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value]) => value ?? '');

test('a stop ends the server alone, and the next start adopts the worker', async () => {
  const database = await createTestDatabase('sqlite');
  const port = await freePort();
  const [command = '', ...words] = valuesOf('ExecStart')[0]?.split(' ') ?? [];
  assert.equal(command, '/opt/berth/bin/berth');
  const args = words.map((word) => word.replace('/var/lib/berth', database.data));
  const env = {
    // All that systemd gives to a service of the system: no HOME either.
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin',
    ...Object.fromEntries(valuesOf('Environment').map((line) => line.split('=') as [string, string])),
    // From the file of EnvironmentFile.
    BERTH_PORT: String(port),
    BERTH_ROOT_KEY: ROOT_KEY,
    BERTH_DOCKER: 'off',
    // The marks by which a server that a test leaves behind is found.
    BERTH_TEST_PROCESS: process.env['BERTH_TEST_PROCESS'],
    BERTH_CI_RUN: process.env['BERTH_CI_RUN'],
  };
  const client = createApiClient(`http://127.0.0.1:${port}`, ROOT_KEY);
  let log = '';
  const start = async (): Promise<ChildProcess> => {
    const started = spawn(BERTH_COMMAND, args, { cwd: '/', env, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [started.stdout, started.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (log += text));
    await waitFor(
      'the server is ready',
      async () => {
        assert.equal(started.exitCode, null, log);
        return (await fetch(`${client.url}/readyz`).catch(() => undefined))?.ok;
      },
      START_TIMEOUT_MS,
    );
    return started;
  };
  /** As KillMode=process does: the main process gets the signal, and nothing else does. */
  const stop = async (server: ChildProcess): Promise<void> => {
    const ended = once(server, 'exit');
    server.kill('SIGTERM');
    // What Restart=on-failure takes for a failure would be started again.
    assert.deepEqual(await ended, [0, null], log);
  };

  let server = await start();
  try {
    const id = await deployHandler(client, 'echo', ECHO, { workers: { min: 1, max: 1 } });
    const jobs = queueEndpointClient(client, id, ROOT_KEY);
    const first = await jobs.waitForEnd(await jobs.run({ number: 1 }), START_TIMEOUT_MS);
    assert.deepEqual([first.status, first.output], ['COMPLETED', { number: 1 }], log);
    const workerId = first.workerId ?? '';
    const [worker] = processesOfInstance(workerId);
    assert.ok(worker !== undefined);

    assert.deepEqual(valuesOf('KillMode'), ['process']);
    await stop(server);
    assert.equal(processesOfInstance(workerId)[0], worker);

    server = await start();
    const second = await jobs.waitForEnd(await jobs.run({ number: 2 }), START_TIMEOUT_MS);
    assert.deepEqual([second.output, second.workerId], [{ number: 2 }, workerId]);
    assert.equal(processesOfInstance(workerId)[0], worker);
    assert.deepEqual(
      (await listWorkers(client, id)).map((one) => one.id),
      [workerId],
    );
    await client.call('DELETE', `/v2/serverless/${id}`);
    await waitFor('the worker is gone', () => processesOfInstance(workerId).length === 0, START_TIMEOUT_MS);
    await stop(server);
  } finally {
    server.kill('SIGKILL');
    await database.drop();
  }
});
