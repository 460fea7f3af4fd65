import assert from 'node:assert/strict';
import { existsSync, lstatSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { containerLogLines, createPod, waitForPodStatus } from '../packages/testing/src/pod-client.ts';
import { serverFixture, type TestAccount } from '../packages/testing/src/server-fixture.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';
import { ATTEMPTS } from './isolation/hostile-attempts.ts';

const SECRET = 'victim-secret-5f1c9a';
const SHM_KEY = 0x6265_7274;
/** Everything that other accounts must not reach: a file, a volume, shared memory, a socket. */
const VICTIM = `
set -e
for file in secret.txt /workspace/secret.txt /tmp/victim-secret /dev/shm/victim-secret; do echo "$SECRET" > $file; done
exec python3 -u - <<'END'
import ctypes, os, socket
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
at = libc.shmat(libc.shmget(${SHM_KEY}, 4096, 0o1666), None, 0)
ctypes.memmove(at, os.environ['SECRET'].encode(), len(os.environ['SECRET']))
server = socket.socket(socket.AF_UNIX)
server.bind('/tmp/victim.sock'); os.chmod('/tmp/victim.sock', 0o777); server.listen()
print('ready')
while True: server.accept()[0].send(os.environ['SECRET'].encode())
END`;
/** Runs each attempt, with its exit code. */
const HOSTILE = `
echo "mine is $OWN_SECRET"
${ATTEMPTS.map(({ command }, index) => `echo "@@ begin ${index}"; timeout 10 sh -c ${quote(command)} </dev/null 2>&1; code=$?; echo; echo "@@ end ${index} $code"`).join('\n')}
echo "@@ done"
exec sleep 1000`;

/** Users of their own need root; the tests of what happens without it are in isolation-refused.test.ts. */
const skip = process.platform !== 'linux' || process.getuid?.() !== 0;

describe('a hostile tenant on the process engine', { skip }, () => {
  const pods: { account: TestAccount; id: string }[] = [];
  // Before the server is stopped, which is the first hook after this one.
  after(async () => {
    for (const { account, id } of pods) await account.call('DELETE', `/v2/pods/${id}`);
  });
  const stage = serverFixture('sqlite', { BERTH_RATE_LIMITS: 'off' });
  const results = new Map<number, { code: number; output: string }>();
  let victim: TestAccount;
  let hostile: TestAccount;
  let victimPod: string;
  let victimRoot: string;
  let victimPid: number;
  let hostilePod: string;

  const startPod = async (account: TestAccount, body: Record<string, unknown>): Promise<string> => {
    const { status, body: pod, text } = await createPod(account, body);
    assert.equal(status, 201, text);
    pods.push({ account, id: pod.id });
    await waitForPodStatus(account, pod.id, 'RUNNING');
    return pod.id;
  };
  const createVolume = async (account: TestAccount): Promise<string> => {
    const wanted = { name: 'volume', size: 10, dataCenter: 'LOCAL-1' };
    const { status, body, text } = await account.call<{ id: string }>('POST', '/v2/network-volumes', wanted);
    assert.equal(status, 201, text);
    return body.id;
  };
  const logOf = async (account: TestAccount, id: string): Promise<string> =>
    (await containerLogLines(account, id)).map((line) => `${line}\n`).join('');
  const waitForLog = (account: TestAccount, id: string, wanted: RegExp): Promise<string> =>
    waitFor(
      `${id} wrote ${wanted}`,
      async () => {
        const log = await logOf(account, id);
        return wanted.test(log) && log;
      },
      60_000,
    );

  before(async () => {
    victim = await stage.createAccount('victim');
    hostile = await stage.createAccount('hostile');
    const { data } = stage.database;
    const victimVolume = await createVolume(victim);
    victimPod = await startPod(victim, {
      cmd: ['sh', '-c', VICTIM],
      env: { SECRET },
      ports: ['8000/http'],
      mounts: { network: [{ volumeId: victimVolume, path: '/workspace' }] },
    });
    await waitForLog(victim, victimPod, /ready/);
    victimRoot = join(data, 'instances', victimPod, 'root');
    const victimUid = statSync(victimRoot).uid;
    victimPid = processOf(victimUid);
    hostilePod = await startPod(hostile, {
      cmd: ['sh', '-c', 'eval "$HOSTILE"'],
      env: {
        OWN_SECRET: 'hello',
        DATA: resolve(data),
        BERTH_PID: String(stage.server.process.pid),
        BERTH_PROGRAM: fileURLToPath(new URL('../packages/cloud/bin/berth.js', import.meta.url)),
        VICTIM_POD: victimPod,
        VICTIM_ROOT: victimRoot,
        VICTIM_VOLUME: join(data, 'volumes', victimVolume),
        VICTIM_PID: String(victimPid),
        VICTIM_UID: String(victimUid),
        VICTIM_SHM_KEY: String(SHM_KEY),
        API: stage.server.url,
        HOSTILE,
      },
    });
    const log = await waitForLog(hostile, hostilePod, /^@@ done$/m);
    assert.match(log, /mine is hello/);
    for (const [index] of ATTEMPTS.entries()) {
      const found = new RegExp(`^@@ begin ${index}$([^]*?)^@@ end ${index} (\\d+)$`, 'm').exec(log);
      assert.ok(found, `attempt ${index} has no result: ${log.slice(-3000)}`);
      results.set(index, { output: found[1] ?? '', code: Number(found[2]) });
    }
  });

  const secrets = (): string[] => [
    SECRET,
    stage.server.key,
    readFileSync(join(stage.database.data, 'master.key'), 'utf8').trim(),
    'BERTH_ROOT_KEY',
  ];

  for (const [index, { name, mayEnd }] of ATTEMPTS.entries())
    test(`cannot ${name}`, () => {
      const { code, output } = results.get(index) ?? { code: 0, output: '' };
      for (const secret of secrets()) assert.ok(!output.includes(secret), output);
      if (mayEnd !== true) assert.notEqual(code, 0, output);
      // A time-out or a missing program would prove nothing.
      assert.ok(
        code !== 124 && code !== 127 && !/SyntaxError|not found$/m.test(output),
        `${code}: ${output}`,
      );
    });

  test('left the victim and Berth as they were', async () => {
    assert.equal(readFileSync(join(victimRoot, 'secret.txt'), 'utf8'), `${SECRET}\n`);
    assert.ok(!existsSync(join(victimRoot, 'planted')));
    assert.ok(existsSync(`/proc/${victimPid}`));
    assert.equal(readFileSync(join(stage.database.data, 'root.key'), 'utf8').trim(), stage.server.key);
    await waitForPodStatus(victim, victimPod, 'RUNNING');
  });

  test('runs as a user of its own, and its things are closed to others', () => {
    const { data } = stage.database;
    const [one, other] = [victimPod, hostilePod].map((id) => statSync(join(data, 'instances', id, 'root')));
    assert.notEqual(one?.uid, other?.uid);
    assert.ok((one?.uid ?? 0) > 0 && (other?.uid ?? 0) > 0);
    for (const folder of [one, other]) assert.equal((folder?.mode ?? 0) & 0o077, 0);
    assert.equal(statSync(data).mode & 0o777, 0o700);
    for (const name of readdirSync(data)) assert.equal(lstatSync(join(data, name)).mode & 0o077, 0, name);
  });

  test("cannot take over the other account's port with its marker", async () => {
    const server = `import http.server, os
class H(http.server.BaseHTTPRequestHandler):
  def do_GET(self): self.send_response(200); self.end_headers(); self.wfile.write(b'hostile')
print('listening', flush=True)
http.server.HTTPServer(('127.0.0.1', 8000), H).serve_forever()`;
    const id = await startPod(hostile, {
      cmd: ['sh', '-c', 'exec env BERTH_ROOT="$VICTIM_ROOT" python3 -c "$SERVER"'],
      env: { VICTIM_ROOT: victimRoot, SERVER: server },
    });
    await waitForLog(hostile, id, /listening/);
    const response = await fetch(`${stage.server.url}/proxy/${victimPod}-8000/`);
    assert.notEqual(await response.text(), 'hostile');
  });

  test('gets no rights of root through its environment', async () => {
    const bin =
      'mkdir -p /workspace/bin; for p in setpriv mount umount pivot_root cat env sh; do printf "#!/bin/sh\\nid -u >> /workspace/ids\\nexec /usr/bin/$0 \\"\\$@\\"\\n" > /workspace/bin/$p; chmod 755 /workspace/bin/$p; done';
    const volumeId = await createVolume(hostile);
    const prepared = await startPod(hostile, {
      cmd: ['sh', '-c', `${bin}; echo prepared; exec sleep 1000`],
      mounts: { network: [{ volumeId, path: '/workspace' }] },
    });
    await waitForLog(hostile, prepared, /prepared/);
    const folder = join(stage.database.data, 'volumes', volumeId);
    const changed = await hostile.call('PATCH', `/v2/pods/${prepared}`, {
      env: {
        PATH: `${folder}/bin:/workspace/bin:/usr/bin:/bin`,
        ENV: `${folder}/bin/cat`,
        LD_PRELOAD: `${folder}/evil.so`,
        IFS: 'x',
      },
      cmd: ['sh', '-c', 'echo again; exec sleep 1000'],
    });
    assert.equal(changed.status, 200, changed.text);
    await waitForLog(hostile, prepared, /again/);
    const ids = existsSync(join(folder, 'ids')) ? readFileSync(join(folder, 'ids'), 'utf8') : '';
    assert.doesNotMatch(ids, /^0$/m);
  });

  test('cannot have Berth link its volume into the machine', async () => {
    const volumeId = await createVolume(hostile);
    for (const path of ['/etc/cron.d/berth-planted', '/usr/local/bin/berth-planted', '/berth-planted']) {
      const id = await startPod(hostile, { mounts: { network: [{ volumeId, path }] } });
      assert.ok(lstatSync(path, { throwIfNoEntry: false }) === undefined, path);
      await hostile.call('DELETE', `/v2/pods/${id}`);
    }
  });
});

/** A process of this user that is not a shell. */
function processOf(uid: number): number {
  const found = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .find((pid) => {
      const status = readFileSync(`/proc/${pid}/status`, 'utf8');
      return new RegExp(`^Uid:\\s+${uid}\\b`, 'm').test(status) && /^Name:\s+python3/m.test(status);
    });
  assert.ok(found, `no process of user ${uid}`);
  return Number(found);
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
