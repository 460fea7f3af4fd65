import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync, readdirSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { waitFor } from '../../../../testing/src/wait-for.ts';
import { ManualClock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import type { InstanceEngine } from '../engine.ts';
import { waitUntil } from '../suite/engine-suite-fixture.ts';
import type { InstanceHandle, InstanceSpec } from '../instance.ts';
import { allProcesses, findProcess, TICKS_PER_SECOND } from './process-table.ts';
import { supervisionProblem } from './supervise.ts';
import { openEngine } from './process-test-engine.ts';

/** What only the process engine has: process ids, folders and a shared host. */
describe('instances that are processes', { skip: supervisionProblem() ?? false }, () => {
  let data = '';
  let engine: InstanceEngine;
  before(async () => {
    data = await mkdtemp(join(tmpdir(), 'berth-processes-'));
  });
  after(() => rm(data, { recursive: true }));
  beforeEach(async () => {
    engine = await openEngine(data);
  });
  afterEach(async () => {
    for (const { id } of await engine.list()) await engine.remove(id);
    await engine.close();
  });

  function script(id: string, commands: string, more: Partial<InstanceSpec> = {}): InstanceSpec {
    const command = { entrypoint: ['sh', '-c'], cmd: [commands] };
    return {
      id,
      labels: {},
      image: 'local/shell',
      command,
      env: {},
      ports: [],
      mounts: [],
      cpu: 1,
      memoryInGb: 1,
      gpus: null,
      containerDiskInGb: 1,
      ...more,
    };
  }

  async function output(id: string): Promise<string[]> {
    return (await Array.fromAsync(engine.logs(id, { follow: true, source: 'container' }))).map(
      ({ line }) => line,
    );
  }

  async function waitForLine(id: string, wanted: string): Promise<void> {
    for await (const { line } of engine.logs(id, { follow: true }, AbortSignal.timeout(20_000)))
      if (line === wanted) return;
    assert.fail(`${id} never wrote ${wanted}`);
  }

  function commandLines(): string[] {
    return allProcesses().flatMap(({ pid }) => {
      try {
        return [readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')];
      } catch {
        return [];
      }
    });
  }

  for (const useCgroups of [true, false]) {
    test(`no process of it outlives it, ${useCgroups ? 'with' : 'without'} cgroups`, async () => {
      await engine.close();
      engine = await openEngine(data, { useCgroups });
      const tag = `7${process.pid}${useCgroups ? 1 : 0}`;
      const spread =
        `trap "" TERM; sleep ${tag}1 & setsid sleep ${tag}2 & (setsid sh -c "trap '' TERM HUP; sleep ` +
        `${tag}3; :" &); nohup sleep ${tag}4 >/dev/null 2>&1 & echo ready;`;
      const left = (): string[] => commandLines().filter((line) => line.includes(`sleep ${tag}`));
      await engine.start(script('spread', `${spread} while :; do sleep ${tag}5; done`));
      await waitForLine('spread', 'ready');
      await engine.remove('spread');
      assert.deepEqual(left(), []);
      assert.deepEqual(await readdir(join(data, 'instances')), []);

      await engine.start(script('spread', `${spread} exit 0`));
      await output('spread');
      assert.deepEqual(left(), [], 'the processes it started end with it');
    });
  }

  test('killing the supervisor ends the instance', async () => {
    const handle = await engine.start(script('orphan', `echo ready; exec sleep 8${process.pid}`));
    await waitForLine('orphan', 'ready');
    process.kill(handle.state['pid'] as number, 'SIGKILL');
    assert.deepEqual(await output('orphan'), ['ready']);
    const [instance] = await engine.list();
    assert.deepEqual([instance?.status, instance?.exitCode], ['exited', null]);
    assert.deepEqual(
      commandLines().filter((line) => line.includes(`sleep 8${process.pid}`)),
      [],
    );
  });

  test('a process with a reused process id is neither adopted nor killed', async () => {
    const handle = await engine.start(script('first', 'echo hello'));
    await output('first');
    // Processes are distinguished by their start tick, and a fast machine starts two in one tick.
    await pause(2_000 / TICKS_PER_SECOND);
    const other = await engine.start(script('other', `echo ready; exec sleep 9${process.pid}`));
    await waitForLine('other', 'ready');
    await engine.close();

    // Simulates process ids that were reused by the other instance.
    const folder = join(data, 'instances', 'first');
    const [otherSupervisor = '', otherChild = ''] = readFileSync(
      join(data, 'instances', 'other', 'started'),
      'utf8',
    ).split('\n');
    const withPidOf = (stat: string, donor: string): string =>
      stat.replace(/^\d+/, String(Number.parseInt(donor, 10)));
    const [supervisor = '', child = ''] = readFileSync(join(folder, 'started'), 'utf8').split('\n');
    writeFileSync(
      join(folder, 'started'),
      `${withPidOf(supervisor, otherSupervisor)}\n${withPidOf(child, otherChild)}\n`,
    );
    await rm(join(folder, 'exit'));
    engine = await openEngine(data);
    const pid = other.state['pid'] as number;
    const taken: InstanceHandle = { ...handle, state: { ...handle.state, pid } };
    const known = await engine.adopt(taken);
    assert.deepEqual([known?.status, known?.exitCode], ['exited', null]);
    assert.equal(await engine.adopt({ ...other, state: { ...other.state, startTicks: 1 } }), undefined);
    await engine.remove('first');
    assert.equal(findProcess(pid)?.ended, false);
    assert.equal((await engine.adopt(other))?.status, 'running');
  });

  test('instances from before a reboot have exited', async () => {
    await engine.start(script('old', 'echo hello; exit 0'));
    await output('old');
    await engine.close();
    const file = join(data, 'instances', 'old', 'instance.json');
    writeFileSync(file, readFileSync(file, 'utf8').replace(/"bootId":"[^"]+"/, '"bootId":"another"'));
    writeFileSync(
      join(data, 'instances', 'old', 'started'),
      `${readFileSync('/proc/self/stat', 'utf8').trim()}\n`.repeat(2),
    );
    engine = await openEngine(data);
    assert.deepEqual(
      (await engine.list()).map(({ status }) => status),
      ['exited'],
    );
  });

  test('an interrupted start is cleaned up', async () => {
    await engine.close();
    mkdirSync(join(data, 'instances', 'half', 'root'), { recursive: true });
    engine = await openEngine(data);
    assert.deepEqual(await engine.list(), []);
    assert.equal(existsSync(join(data, 'instances', 'half')), false);
  });

  test('the working folder is emptied at stop', async () => {
    await engine.start(
      script('disk', 'echo > file; echo > "$TMPDIR/other"; pwd; echo $HOME; echo ready; sleep 600'),
    );
    await waitForLine('disk', 'ready');
    const root = join(data, 'instances', 'disk', 'root');
    assert.equal(existsSync(join(root, 'file')), true);
    await engine.stop('disk', 0);
    assert.deepEqual((await output('disk')).slice(0, 2), [root, root]);
    assert.equal(existsSync(root), false);
    assert.equal(existsSync(join(data, 'instances', 'disk', 'tmp')), false);
  });

  test('the environment is not written to disk', async () => {
    await engine.start(script('secret', 'echo ready; sleep 600', { env: { TOKEN: 'do-not-write-me' } }));
    await waitForLine('secret', 'ready');
    for (const entry of await readdir(data, { recursive: true, withFileTypes: true })) {
      if (entry.isFile())
        assert.equal(
          readFileSync(join(entry.parentPath, entry.name), 'utf8').includes('do-not-write-me'),
          false,
          entry.name,
        );
    }
  });

  test('a server on the declared port is found if it belongs to the instance', async () => {
    const server =
      "require('node:net').createServer().listen(Number(process.argv[1]), '127.0.0.1', () => console.log('ready'))";
    const [mine, taken] = [18_000 + (process.pid % 1000), 19_000 + (process.pid % 1000)];
    const command = (port: number) => ({ entrypoint: ['node', '-e', server, String(port)], cmd: [] });
    const ports = [
      { port: mine, protocol: 'tcp' as const },
      { port: taken, protocol: 'tcp' as const },
    ];
    await engine.start(script('one', '', { command: command(mine), ports }));
    await engine.start(script('two', '', { command: command(taken), ports }));
    await Promise.all([waitForLine('one', 'ready'), waitForLine('two', 'ready')]);
    assert.deepEqual(await engine.address('one', mine), { host: '127.0.0.1', port: mine });
    assert.equal(await engine.address('one', taken), undefined, 'another instance listens there');
    assert.deepEqual(await engine.address('two', taken), { host: '127.0.0.1', port: taken });
  });

  test('a machine without free memory refuses to start', async () => {
    await engine.close();
    engine = await openEngine(data, { freeMemory: () => 1_000_000 });
    await assert.rejects(
      engine.start(script('full', 'true')),
      (error) =>
        error instanceof BerthError && error.code === 'capacity' && /memory are free/.test(error.message),
    );
    assert.deepEqual(await readdir(join(data, 'instances')), []);
  });

  test('an error of the file system is reported with its reason', async () => {
    writeFileSync(join(data, 'logs', 'blocked'), 'a file where a folder has to be');
    await assert.rejects(
      engine.start(script('blocked', 'sleep 600')),
      (error) =>
        error instanceof BerthError &&
        error.code === 'unavailable' &&
        /blocked could not be started/.test(error.message),
    );
    assert.deepEqual([await engine.list(), await readdir(join(data, 'instances'))], [[], []]);
    await rm(join(data, 'logs', 'blocked'));
  });

  test('without a data folder a start is refused with its reason', async () => {
    const { ProcessEngine } = await import('./process-engine.ts');
    const idle = new ProcessEngine({ virtualGpus: [] });
    await assert.rejects(
      idle.start(script('x', 'true')),
      (error) => error instanceof BerthError && error.code === 'unavailable',
    );
    await idle.close();
  });

  test('logs of removed instances are deleted after their retention', async () => {
    await engine.close();
    const clock = new ManualClock();
    engine = await openEngine(data, { clock, logRetentionMs: 1000 });
    await engine.start(script('kept', 'echo hello'));
    await output('kept');
    await engine.remove('kept');
    assert.deepEqual(await output('kept'), ['hello']);
    clock.advance(1000);
    await engine.remove('anything');
    assert.deepEqual(await output('kept'), []);
  });

  test('an instance that is removed at once leaves no output writer behind', async () => {
    for (let count = 0; count < 10; count += 1) {
      await engine.start(script(`brief-${count}`, 'sleep 100'));
      await engine.remove(`brief-${count}`);
    }
    const writers = (): string[] =>
      readdirSync('/proc').filter((pid) => {
        try {
          const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
          return command.includes('output-writer.sh') && command.includes(join(data, 'instances', 'brief-'));
        } catch {
          return false;
        }
      });
    await waitFor('the output writers have ended', () => writers().length === 0);
  });

  test('a process with unlimited output does not fill the disk', async () => {
    await engine.start(script('loud', `yes "${'x'.repeat(99)}" | head -n 1000000; echo done`));
    assert.equal((await output('loud')).at(-1), 'done');
    const lines = await Array.fromAsync(engine.logs('loud'));
    // By the limit of the speed or, where a busy machine writes them more slowly than that, by that of the log.
    assert.ok(
      lines.some(({ line, source }) => source === 'system' && /[\d,]+ lines (?:were )?dropped/.test(line)),
      'it says that lines were dropped',
    );
    let bytes = 0;
    for (const name of await readdir(join(data, 'logs', 'loud')))
      bytes += readFileSync(join(data, 'logs', 'loud', name)).length;
    assert.ok(bytes < 20_000_000, `${bytes} bytes`);
    assert.equal(existsSync(join(data, 'instances', 'loud', 'output')), false);
  });

  describe('handlers', () => {
    function image(name: string, files: Record<string, string>): string {
      const folder = join(data, 'images', name, '1');
      mkdirSync(folder, { recursive: true });
      for (const [file, content] of Object.entries(files)) writeFileSync(join(folder, file), content);
      return `local/${name}:1`;
    }
    const bare = { entrypoint: [], cmd: [] };
    const testInput = '{"input": {"name": "Ada"}}';

    test('a default-exported function is served', async () => {
      const handler =
        'export default async ({ input }: { input: { name: string } }) => `hello ${input.name}`;';
      await engine.start(
        script('typescript', '', {
          image: image('exporting', { 'handler.ts': handler, 'test_input.json': testInput }),
          command: bare,
        }),
      );
      assert.ok(
        (await output('typescript')).some((line) => line.includes('hello Ada')),
        JSON.stringify(await output('typescript')),
      );
    });

    test('a file that calls serve finds the worker SDK', async () => {
      const handler = "import { serve } from 'berth-worker';\nserve(({ input }) => `hello ${input.name}`);";
      await engine.start(
        script('javascript', '', {
          image: image('serving', {
            'handler.js': handler,
            'package.json': '{"type":"module"}',
            'test_input.json': testInput,
          }),
          command: bare,
        }),
      );
      assert.ok(
        (await output('javascript')).some((line) => line.includes('hello Ada')),
        JSON.stringify(await output('javascript')),
      );
    });

    test('Python runs and writes nothing into the image', async (context) => {
      const handler = 'import helper, os\nprint("hello from", os.path.basename(os.getcwd()), helper.NAME)';
      const name = image('python', { 'handler.py': handler, 'helper.py': 'NAME = "python"' });
      try {
        await engine.start(script('python', '', { image: name, command: bare }));
      } catch (error) {
        if (error instanceof BerthError && error.message.includes('python3'))
          return context.skip('there is no Python here');
        throw error;
      }
      assert.deepEqual(await output('python'), ['hello from root python']);
      assert.deepEqual((await readdir(join(data, 'images', 'python', '1'))).sort(), [
        'handler.py',
        'helper.py',
      ]);
    });

    test('the command of berth.json sees the image files in its own working folder', async () => {
      const name = image('own', {
        'berth.json': '{"command": ["sh", "run.sh"]}',
        'run.sh': 'cat words; echo mine > made; ls',
        words: 'some words\n',
      });
      await engine.start(script('own', '', { image: name, command: bare }));
      assert.deepEqual(await output('own'), ['some words', 'berth.json', 'made', 'run.sh', 'words']);
      assert.equal(existsSync(join(data, 'images', 'own', '1', 'made')), false);
    });
  });

  test('the exit of an instance that ends during its start is reported', async () => {
    const ids = Array.from({ length: 12 }, (_, index) => `quick${index}`);
    await Promise.all(ids.map((id) => engine.start(script(id, 'exit 3'))));
    for (const id of ids) await output(id);
    await waitUntil(async () => (await engine.list()).every(({ status }) => status === 'exited'));
    assert.deepEqual(
      (await engine.list()).map(({ exitCode }) => exitCode),
      ids.map(() => 3),
    );
  });
});
