import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { startPython } from '../../../packages/testing/src/python-process.ts';
import { clearedServerFixture } from '../../../packages/testing/src/cleared-server-fixture.ts';
import { installedPython } from '../python-programs.ts';

const python = installedPython('runpod');

/** The command, on a terminal of its own, with someone who answers what it asks. */
const AT_A_TERMINAL = `
import json, os, pty, re, sys

command, answers = json.loads(os.environ["COMMAND"]), json.loads(os.environ["ANSWERS"])
pid, terminal = pty.fork()
if pid == 0:
    os.chdir(os.environ["FOLDER"])
    os.execv(command[0], command)
shown = ""
while True:
    try:
        read = os.read(terminal, 4096).decode(errors="replace")
    except OSError:
        break
    if not read:
        break
    sys.stdout.write(read)
    # A terminal is asked where its cursor stands, and says so.
    for _ in range(read.count("\\x1b[6n")):
        os.write(terminal, b"\\x1b[1;1R")
    shown += read
    while answers and answers[0][0] in shown:
        shown = shown.split(answers[0][0], 1)[1]
        os.write(terminal, (answers.pop(0)[1] + "\\r").encode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`;

describe('the command line of the Python SDK', { concurrency: false }, () => {
  const fixture = clearedServerFixture();
  const home = mkdtempSync(join(tmpdir(), 'berth-runpod-cli-'));
  after(() => rmSync(home, { recursive: true }));

  const runpod = async (
    args: string[],
    answers: [asked: string, answer: string][] = [],
  ): Promise<{ code: number | null; output: string }> => {
    const program = startPython(python, AT_A_TERMINAL, {
      HOME: home,
      FOLDER: home,
      TERM: 'xterm',
      RUNPOD_API_BASE_URL: fixture.server.url,
      COMMAND: JSON.stringify([join(python.path, '../runpod'), ...args]),
      ANSWERS: JSON.stringify(answers),
    });
    const code = await program.ended;
    return { code, output: program.output() };
  };
  const done = async (...given: Parameters<typeof runpod>): Promise<string> => {
    const { code, output } = await runpod(...given);
    assert.equal(code, 0, output);
    return output;
  };

  test('config keeps the key', async () => {
    assert.equal((await runpod(['config', '--check'])).code, 1);
    assert.match(await done(['config', fixture.server.key]), /Credentials set/);
    assert.match(await done(['config', '--check']), /already set/);
    assert.match(readFileSync(join(home, '.runpod/config.toml'), 'utf8'), new RegExp(fixture.server.key));
  });

  test('ssh add-key makes a key and adds it, and list-keys shows it', async () => {
    assert.match(
      await done(
        ['ssh', 'add-key'],
        [
          ['to your account?', 'y'],
          ['a name for this key', 'my key'],
        ],
      ),
      /has been added/,
    );
    const { body } = await fixture.operator.call<{ keys: string[] }>('GET', '/v2/account/ssh-keys');
    assert.match(JSON.stringify(body), /ssh-rsa AAAA\S+ my-key/);
    assert.match(await done(['ssh', 'list-keys']), /my-key +\| ssh-rsa +\| SHA256:/);
  });

  test('pod create says what its default pod needs, and pod list shows what there is', async () => {
    const { code, output } = await runpod(['pod', 'create', 'default'], [['default pod?', 'y']]);
    assert.notEqual(code, 0);
    assert.match(output, /runpod\/base:0\.0\.0.*needs a container engine/);
    await fixture.operator.call('POST', '/v2/pods', {
      name: 'listed',
      image: 'local/shell',
      cmd: ['sleep', '1000'],
      cpu: { id: 'cpu3c', vcpuCount: 2 },
    });
    assert.match(await done(['pod', 'list']), /listed +\| +RUNNING +\| +local\/shell/);
  });

  test('project new asks for one of the network volumes and writes the project', async () => {
    const { code, output } = await runpod(['project', 'new', '--name', 'hello']);
    assert.deepEqual([code, output.includes('You do not have any network volumes')], [1, true]);
    const { body } = await fixture.operator.call<{ id: string }>('POST', '/v1/networkvolumes', {
      name: 'disk',
      size: 10,
      dataCenterId: 'LOCAL-1',
    });
    const shown = await done(
      ['project', 'new', '--name', 'hello'],
      [
        ['disk (10 GB, LOCAL-1)', ''],
        ['CUDA version', ''],
        ['Python version', ''],
        ['want to continue?', 'y'],
      ],
    );
    assert.match(shown, /Project hello created successfully/);
    assert.match(
      readFileSync(join(home, 'hello/runpod.toml'), 'utf8'),
      new RegExp(`storage_id = "${body.id}"`),
    );
  });
});
