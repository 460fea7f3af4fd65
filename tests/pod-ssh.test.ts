import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import { getPod, createRunningPod } from '../packages/testing/src/pod-client.ts';
import { runBerth } from '../packages/testing/src/berth-command.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

const run = promisify(execFile);
const SSHD = ['/usr/sbin/sshd', '/usr/local/sbin/sshd', '/sbin/sshd'].find((path) => existsSync(path));
const SSH = (process.env['PATH'] ?? '')
  .split(':')
  .map((folder) => join(folder, 'ssh'))
  .find((path) => existsSync(path));

/** An SSH server that lets in whoever holds a key of PUBLIC_KEY, and says back what it is told to echo. */
const SMALL_SERVER = `
const { Server, utils } = require("${createRequire(import.meta.url).resolve('ssh2')}");
const allowed = process.env.PUBLIC_KEY.split("\\n").map((line) => utils.parseKey(line).getPublicSSH());
const { private: hostKey } = utils.generateKeyPairSync("ed25519");
new Server({ hostKeys: [hostKey] }, (client) => {
  client.on("error", () => client.end());
  client.on("authentication", (asked) => {
    const key = asked.method === "publickey" && allowed.find((one) => one.equals(asked.key.data));
    if (!key || (asked.signature && utils.parseKey(asked.key.algo + " " + key.toString("base64")).verify(asked.blob, asked.signature, asked.hashAlgo) !== true)) return asked.reject(["publickey"]);
    asked.accept();
  });
  client.on("session", (accept) => accept().on("exec", (accept, reject, { command }) => {
    const stream = accept();
    stream.write(command.replace(/^echo /, "") + "\\n");
    stream.exit(0);
    stream.end();
  }));
}).listen(Number(process.env.RUNPOD_TCP_PORT_22));
`;

/**
 * What the start script of an image with a server does: keys from PUBLIC_KEY, a host key, a server on its
 * port. As root it insists on a folder of its own.
 */
const START = `
[ "$(id -u)" -ne 0 ] || mkdir -p /run/sshd
mkdir -p .ssh && chmod 700 .ssh && printf '%s\\n' "$PUBLIC_KEY" >.ssh/authorized_keys
ssh-keygen -q -t ed25519 -N '' -f host_key
exec ${SSHD} -D -e -f /dev/null -h "$PWD/host_key" -p "$RUNPOD_TCP_PORT_22" -o AuthorizedKeysFile="$PWD/.ssh/authorized_keys" -o PidFile=none -o StrictModes=no -o UsePAM=no
`;

describe('SSH into a pod', () => {
  let place: TestDatabase;
  let server: ServerProcess;
  let folder: string;
  before(async () => {
    place = await createTestDatabase('sqlite');
    server = await startServerProcess(place, { BERTH_RATE_LIMITS: 'off' });
    folder = await mkdtemp(join(tmpdir(), 'berth-ssh-'));
  });
  after(async () => {
    await server.stop();
    await place.drop();
    await rm(folder, { recursive: true });
  });

  test("the account's keys are in the environment of a pod that wants them, and of no other", async () => {
    const keys = [
      'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJlcnRoYmVydGhiZXJ0aGJlcnRoYmVydGhiZXJ0aGJl one@here',
      'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJlcnRoYmVydGhiZXJ0aGJlcnRoYmVydGhiZXJ0aGJm two@here',
    ];
    assert.equal((await server.client().call('PUT', '/v2/account/ssh-keys', { keys })).status, 200);
    const [wants, other] = [
      await createRunningPod(server.client(), { startSsh: true, name: 'wants' }),
      await createRunningPod(server.client(), { name: 'other' }),
    ];
    const env = { BERTH_URL: server.url, BERTH_API_KEY: server.key };
    assert.equal(
      (await runBerth(['exec', wants.id, 'printenv', 'PUBLIC_KEY'], env)).stdout,
      `${keys.join('\n')}\n`,
    );
    assert.equal((await runBerth(['exec', other.id, 'printenv', 'PUBLIC_KEY'], env)).code, 1);
    for (const { id } of [wants, other]) await server.client().call('DELETE', `/v2/pods/${id}`);
  });

  const logsIn = async (start: string): Promise<void> => {
    const identity = join(await mkdtemp(join(folder, 'key-')), 'key');
    await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', identity]);
    assert.equal(
      (
        await server
          .client()
          .call('PUT', '/v2/account/ssh-keys', { keys: [(await readFile(`${identity}.pub`, 'utf8')).trim()] })
      ).status,
      200,
    );
    const { id } = await createRunningPod(server.client(), {
      startSsh: true,
      ports: ['22/tcp'],
      cmd: ['sh', '-c', start],
    });
    const mapped = await waitFor('its server listens', async () =>
      (await getPod(server.client(), id)).runtime?.ports.find(({ public: outside }) => outside !== null),
    );
    const { pods } = (
      await runBerth<{ pods: { ssh: { direct: { host: string; port: number } } }[] }>(
        ['pod', 'ls', '--json'],
        { BERTH_URL: server.url, BERTH_API_KEY: server.key },
      )
    ).json;
    assert.equal(pods[0]?.ssh.direct.port, mapped.public);
    const { stdout } = await run('ssh', [
      '-i',
      identity,
      '-F',
      '/dev/null',
      '-o',
      'StrictHostKeyChecking=no',
      '-o',
      'UserKnownHostsFile=/dev/null',
      '-o',
      'BatchMode=yes',
      '-p',
      String(mapped.public),
      `${userInfo().username}@${mapped.ip}`,
      'echo',
      'logged in',
    ]);
    assert.equal(stdout, 'logged in\n');
    await assert.rejects(
      run('ssh', [
        '-F',
        '/dev/null',
        '-o',
        'IdentitiesOnly=yes',
        '-o',
        'StrictHostKeyChecking=no',
        '-o',
        'UserKnownHostsFile=/dev/null',
        '-o',
        'BatchMode=yes',
        '-p',
        String(mapped.public),
        `${userInfo().username}@${mapped.ip}`,
        'true',
      ]),
      /Permission denied/,
    );
    await server.client().call('DELETE', `/v2/pods/${id}`);
  };

  test(
    "one logs in to the SSH server of this machine, run in a pod, with the account's key",
    { skip: SSHD === undefined && 'NOT RUN: this machine has no sshd' },
    () => logsIn(START),
  );
  test(
    "one logs in to a small SSH server in a pod with the account's key, at the address that is shown",
    { skip: SSH === undefined && 'NOT RUN: this machine has no ssh' },
    () => logsIn(`exec node -e '${SMALL_SERVER}'`),
  );
});
