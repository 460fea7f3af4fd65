import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { clientFixture } from '../../../packages/testing/src/client-fixture.ts';
import { freePort } from '../../../packages/testing/src/free-port.ts';
import { createRunningPod, getPod } from '../../../packages/testing/src/pod-client.ts';
import { waitFor } from '../../../packages/testing/src/wait-for.ts';

const run = promisify(execFile);

/**
 * What the start script of an image does: a server for files, and an SSH server that knows the account's
 * keys.
 */
const START = `
[ "$(id -u)" -ne 0 ] || mkdir -p /run/sshd
mkdir -p .ssh && chmod 700 .ssh && printf '%s\\n' "$PUBLIC_KEY" >.ssh/authorized_keys
ssh-keygen -q -t ed25519 -N '' -f host_key
mkdir site && echo 'from the pod' >site/index.html
python3 -m http.server --bind 127.0.0.1 --directory site "$SITE_PORT" &
exec /usr/sbin/sshd -D -e -f /dev/null -h "$PWD/host_key" -p "$RUNPOD_TCP_PORT_22" \\
  -o AuthorizedKeysFile="$PWD/.ssh/authorized_keys" -o PidFile=none -o StrictModes=no -o UsePAM=no \\
  -o 'Subsystem=sftp internal-sftp' -o "SetEnv=RUNPOD_POD_ID=$RUNPOD_POD_ID"
`;

describe('OpenSSH into a pod', () => {
  const fixture = clientFixture();
  const folder = mkdtempSync(join(tmpdir(), 'berth-openssh-'));
  let options: string[];
  let address: string;
  let podId: string;
  let sitePort: number;
  before(async () => {
    const identity = join(folder, 'key');
    await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', identity]);
    const keys = [readFileSync(`${identity}.pub`, 'utf8').trim()];
    assert.equal((await fixture.client.call('PUT', '/v2/account/ssh-keys', { keys })).status, 200);
    sitePort = await freePort();
    const { id } = await createRunningPod(fixture.client, {
      startSsh: true,
      ports: ['22/tcp'],
      env: { SITE_PORT: String(sitePort) },
      cmd: ['bash', '-c', START],
    });
    podId = id;
    const mapped = await waitFor('its server listens', async () =>
      (await getPod(fixture.client, id)).runtime?.ports.find(({ public: outside }) => outside !== null),
    );
    // A configuration file, as people have one for each machine.
    const config = join(folder, 'config');
    writeFileSync(
      config,
      `Host pod
  HostName ${mapped.ip}
  Port ${mapped.public}
  User ${userInfo().username}
  IdentityFile ${identity}
  IdentitiesOnly yes
  BatchMode yes
  StrictHostKeyChecking accept-new
  UserKnownHostsFile ${join(folder, 'known_hosts')}
`,
    );
    options = ['-F', config];
    address = 'pod';
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  test('ssh runs a command with its input, output and exit code, in the pod', async () => {
    assert.equal((await run('ssh', [...options, address, 'echo $RUNPOD_POD_ID'])).stdout, `${podId}\n`);
    const child = spawn('ssh', [...options, address, 'tr a-z A-Z; exit 7'], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    let said = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
    child.stdin.end('quietly');
    assert.deepEqual([await once(child, 'close').then(([code]) => code as number), said], [7, 'QUIETLY']);
  });

  test('scp copies a folder into the pod and back', async () => {
    const source = join(folder, 'data');
    mkdirSync(join(source, 'sub'), { recursive: true });
    writeFileSync(join(source, 'sub/zwei €.txt'), 'zwei');
    writeFileSync(join(source, 'large.bin'), Buffer.alloc(8 << 20, 5));
    const inPod = join(folder, 'in-pod');
    await run('scp', ['-q', ...options, '-r', source, `${address}:${inPod}`]);
    await run('scp', ['-q', ...options, '-r', `${address}:${inPod}`, join(folder, 'back')]);
    assert.equal(readFileSync(join(folder, 'back/sub/zwei €.txt'), 'utf8'), 'zwei');
    assert.ok(readFileSync(join(folder, 'back/large.bin')).equals(readFileSync(join(source, 'large.bin'))));
  });

  test('ssh -L forwards a port to a server that only the pod reaches', async () => {
    const local = await freePort();
    const tunnel = spawn('ssh', [...options, '-N', '-L', `${local}:127.0.0.1:${sitePort}`, address], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const ended = once(tunnel, 'exit');
    try {
      const text = await waitFor('the tunnel answers', () =>
        fetch(`http://127.0.0.1:${local}/`)
          .then((response) => response.text())
          .catch(() => undefined),
      );
      assert.equal(text, 'from the pod\n');
    } finally {
      tunnel.kill();
      await ended;
    }
  });
});
