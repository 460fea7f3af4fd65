import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { after, before, describe, test } from 'node:test';
import { createTestDatabase } from '../packages/testing/src/test-database.ts';
import type { TestDatabase } from '../packages/testing/src/test-database.ts';
import { POD_HTTP_SERVER_SOURCE } from '../packages/testing/src/pod-http-server.ts';
import { processesOfInstance } from '../packages/testing/src/pod-client.ts';
import { BERTH_COMMAND, runBerth } from '../packages/testing/src/berth-command.ts';
import type { CommandResult } from '../packages/testing/src/berth-command.ts';
import { startServerProcess } from '../packages/testing/src/server-process.ts';
import type { ServerProcess } from '../packages/testing/src/server-process.ts';
import { waitFor } from '../packages/testing/src/wait-for.ts';

interface Shown {
  id: string;
  name: string;
  status: string;
  urls: string[];
  ports: string[];
}

describe('pods on the command line', () => {
  let place: TestDatabase;
  let server: ServerProcess;
  before(async () => {
    place = await createTestDatabase('sqlite');
    server = await startServerProcess(place, { BERTH_RATE_LIMITS: 'off' });
  });
  after(async () => {
    for (const { id } of (await server.client().call<{ pods: Shown[] }>('GET', '/v2/pods')).body.pods)
      await server.client().call('DELETE', `/v2/pods/${id}`);
    await server.stop();
    await place.drop();
  });

  const env = (): Record<string, string> => ({ BERTH_URL: server.url, BERTH_API_KEY: server.key });
  const berth = <T = Record<string, unknown>>(...args: string[]): Promise<CommandResult<T>> =>
    runBerth<T>(args, env());
  const create = async (...args: string[]): Promise<Shown> => {
    const made = await berth<Shown>('pod', 'create', ...args);
    assert.equal(made.code, 0, made.stderr);
    return made.json;
  };
  /** With something to read. */
  const piped = async (
    input: string | Buffer,
    ...args: string[]
  ): Promise<{ code: number | null; stdout: string; stderr: string }> => {
    const child = spawn(BERTH_COMMAND, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'], ...env() },
    });
    const ran = { code: null as number | null, stdout: '', stderr: '' };
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (ran.stdout += chunk));
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (ran.stderr += chunk));
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
    [ran.code] = (await once(child, 'close')) as [number | null];
    return ran;
  };

  test('a life: create, ls, exec, logs, stop, start, restart, open, rm; by name and by id', async () => {
    const pod = await create(
      '--name',
      'first',
      '--port',
      '8000',
      '--port',
      '22/tcp',
      '--env',
      'GREETING=hello',
      'local/shell',
      'sh',
      '-c',
      'echo up; exec sleep 1000',
    );
    assert.deepEqual(
      [pod.name, pod.status, pod.ports, pod.urls],
      ['first', 'RUNNING', ['8000/http', '22/tcp'], [`${server.url}/proxy/${pod.id}-8000/`]],
    );
    const { pods } = (await berth<{ pods: (Shown & { ssh: { direct: unknown } })[] }>('pod', 'ls')).json;
    assert.deepEqual(
      pods.map(({ id, name, ssh }) => [id, name, ssh.direct]),
      [[pod.id, 'first', null]],
    );

    const ran = await berth(
      'exec',
      'first',
      'sh',
      '-c',
      'echo "$GREETING $RUNPOD_POD_ID"; echo oops >&2; exit 9',
    );
    assert.deepEqual([ran.code, ran.stdout, ran.stderr], [9, `hello ${pod.id}\n`, 'oops\n']);
    assert.equal(
      (await berth('pod', 'exec', pod.id, '--', 'printf', '%s|', '--help', '-x')).stdout,
      '--help|-x|',
    );
    assert.deepEqual(
      (await berth('exec', '--json', 'first', 'sh', '-c', 'echo out; echo err >&2; exit 3')).json,
      { exitCode: 3, signal: null, stdout: 'out\n', stderr: 'err\n' },
    );
    assert.deepEqual(await piped('one\ntwo\n', 'exec', 'first', 'cat'), {
      code: 0,
      stdout: 'one\ntwo\n',
      stderr: '',
    });
    assert.equal((await piped('echo from the shell; exit 4\n', 'exec', 'first')).stdout, 'from the shell\n');
    const large = 'x'.repeat(3_000_000);
    assert.equal((await piped(large, 'exec', 'first', 'cat')).stdout.length, large.length);
    const missing = await berth('exec', 'first', 'no-such-command');
    assert.deepEqual([missing.code, /"no-such-command" was not found/.test(missing.stderr)], [1, true]);

    assert.match((await berth('pod', 'logs', 'first')).stdout, /"line":"up"/);
    assert.deepEqual((await berth('pod', 'stop', 'first')).json, {
      id: pod.id,
      name: 'first',
      status: 'EXITED',
    });
    assert.match((await berth('exec', 'first', 'true')).stderr, /is EXITED/);
    for (const action of ['start', 'restart'])
      assert.deepEqual((await berth('pod', action, 'first')).json, {
        id: pod.id,
        name: 'first',
        status: 'RUNNING',
      });
    assert.deepEqual((await berth('pod', 'open', 'first')).json, {
      id: pod.id,
      url: `${server.url}/proxy/${pod.id}-8000/`,
    });
    assert.match(
      (await berth('pod', 'open', 'first', '--port', '22')).stderr,
      /no HTTP port 22; it declares 8000\/http, 22\/tcp/,
    );
    assert.equal((await berth('pod', 'rm', 'first')).code, 2);
    assert.deepEqual((await berth('pod', 'rm', 'first', '--yes')).json, {
      id: pod.id,
      name: 'first',
      removed: true,
    });
    assert.match((await berth('pod', 'logs', pod.id)).stdout, /"line":"up"/);
    assert.match((await berth('pod', 'logs', 'first')).stderr, /there is no pod "first"/);
  });

  test('a name that two have is not enough, and a slip gets a hint', async () => {
    const [one, other] = [
      await create('--name', 'twin', 'local/shell', 'sleep', '1000'),
      await create('--name', 'twin', 'local/shell', 'sleep', '1000'),
    ];
    const refused = await berth('pod', 'stop', 'twin');
    assert.equal(refused.code, 1);
    for (const { id } of [one, other]) assert.ok(refused.stderr.includes(id));
    assert.match((await berth('exec', 'twim', 'true')).stderr, /did you mean "twin"/);
    for (const { id } of [one, other]) assert.equal((await berth('pod', 'rm', '--yes', id)).code, 0);
  });

  test('a pod that does not start reports why, and invalid arguments are refused', async () => {
    const failing = await berth('pod', 'create', '--name', 'bad', 'local/shell', 'no-such-program');
    assert.equal(failing.code, 1);
    assert.match(failing.stderr, /did not start: .*no-such-program/);
    const quick = await berth<Shown>('pod', 'create', '--detach', 'local/shell', 'sleep', '1000');
    assert.ok(['PROVISIONING', 'STARTING', 'RUNNING'].includes(quick.json.status));
    for (const args of [
      ['pod', 'create'],
      ['pod', 'create', '--port', 'http', 'local/shell'],
      ['pod', 'create', '--gpu', 'x', '--cpu', 'cpu3c', 'i'],
      ['exec'],
      ['exec', '--tty', '--no-tty', 'x'],
    ])
      assert.equal((await berth(...args)).code, 2, args.join(' '));
    assert.match(
      (await berth('pod', 'create', '--gpu', 'RTX 409', 'local/shell', 'true')).stderr,
      /did you mean/,
    );
    assert.match((await berth('pod', '--help')).stdout, /pod create[\s\S]*pod open/);
  });

  test('the server in a pod is reachable at the printed address', async () => {
    const { id, urls } = await create(
      '--port',
      '8000',
      '--env',
      'LISTEN_AS=BERTH_PORT_8000',
      'local/shell',
      'node',
      '-e',
      POD_HTTP_SERVER_SOURCE,
    );
    const [url = ''] = urls;
    const answer = await waitFor('it answers', async () => {
      const response = await fetch(url);
      return response.ok ? ((await response.json()) as { pod: string }) : undefined;
    });
    assert.equal(answer.pod, id);
  });

  describe('in a terminal', () => {
    /** `script` is a terminal for this program, with what is typed from a pipe. */
    const typed = (
      command: string,
    ): {
      child: ChildProcess;
      shows(text: string): Promise<unknown>;
      type(text: string): void;
      shown(): string;
    } => {
      const child = spawn(
        'script',
        [
          '--quiet',
          '--return',
          '--flush',
          '--command',
          `stty cols 101 rows 31; exec ${command}`,
          '/dev/null',
        ],
        { stdio: ['pipe', 'pipe', 'inherit'], env: { PATH: process.env['PATH'], TERM: 'xterm', ...env() } },
      );
      let shown = '';
      child.stdout.setEncoding('utf8').on('data', (chunk: string) => (shown += chunk));
      return {
        child,
        shown: () => shown,
        type: (text) => child.stdin.write(text),
        shows: (text) =>
          waitFor(`the terminal shows ${text}`, async () => shown.includes(text)).catch((error: unknown) =>
            Promise.reject(new Error(`${(error as Error).message}: ${JSON.stringify(shown)}`)),
          ),
      };
    };

    test("the shell's terminal has the same size, keys go to it as typed, and its exit code comes back", async () => {
      const { id } = await create('local/shell', 'sleep', '1000');
      const terminal = typed(`${BERTH_COMMAND} exec ${id}`);
      terminal.type('stty size; echo "<$TERM>"\n');
      await terminal.shows('31 101');
      await terminal.shows('<xterm>');
      // What would end this program ends what runs in the pod.
      terminal.type('echo go"ing"; sleep 1000\n');
      await terminal.shows('going\r\n');
      terminal.type('\x03');
      await terminal.shows('^C');
      terminal.type('echo back "again"\n');
      await terminal.shows('back again\r\n');
      terminal.type('exit 5\n');
      const [code] = (await once(terminal.child, 'close')) as [number];
      assert.equal(code, 5);
    });

    test('when this program is killed, the command ends', async () => {
      const { id } = await create('local/shell', 'sleep', '1000');
      const child = spawn(BERTH_COMMAND, ['exec', '--tty', id, 'sleep', '999'], {
        stdio: ['pipe', 'ignore', 'ignore'],
        env: { PATH: process.env['PATH'], ...env() },
      });
      await waitFor('it sleeps', async () => processesOfInstance(id).length > 1 || undefined);
      child.kill('SIGKILL');
      await waitFor('it has ended', async () => processesOfInstance(id).length === 1);
    });
  });
});
