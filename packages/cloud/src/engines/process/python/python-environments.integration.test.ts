import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { writeWheel } from '../../../../../testing/src/python-wheel.ts';
import { ManualClock } from '../../../support/clock.ts';
import { randomIds } from '../../../support/ids.ts';
import { PYTHON_WORKER_PACKAGE } from '../../../support/program-files.ts';
import { runBuildCommand, type RunBuildCommand } from './build-command.ts';
import type { EnvironmentArchives } from './environment-archives.ts';
import { findInterpreters } from './python-interpreters.ts';
import { PythonEnvironments, type PythonEnvironmentsOptions } from './python-environments.ts';

const base = mkdtempSync(join(tmpdir(), 'berth-python-'));
const wheels = join(base, 'wheels');
const signal = new AbortController().signal;
const ALONE = { keepMs: 0, maxBytes: Infinity };
const HOUR = 3_600_000;
let count = 0;

/** The settings of an operator without a network. */
const SETTINGS = { PIP_NO_INDEX: '1', PIP_FIND_LINKS: wheels, UV_NO_INDEX: '1', UV_FIND_LINKS: wheels };
const before_ = { ...process.env };
/** Found once: every Python of the machine is asked, which takes seconds where they are wrappers. */
const interpreters = findInterpreters();

before(() => {
  for (const version of ['1.0', '2.0']) writeWheel(wheels, 'tiny', version, `VERSION = "${version}"\n`);
  Object.assign(process.env, SETTINGS);
});
after(() => {
  for (const name of Object.keys(SETTINGS)) {
    if (before_[name] === undefined) delete process.env[name];
    else process.env[name] = before_[name];
  }
  // A compilation that a test did not wait for may still write.
  rmSync(base, { recursive: true, force: true, maxRetries: 10 });
});

function folder(files: Record<string, string>): string {
  const path = join(base, `image-${(count += 1)}`);
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), content);
  }
  return path;
}

function open(more: Partial<PythonEnvironmentsOptions> = {}): {
  environments: PythonEnvironments;
  path: string;
  runs: () => number;
} {
  const path = more.path ?? join(base, `environments-${(count += 1)}`);
  let builds = 0;
  const run: RunBuildCommand = (command, onLine, abort) => {
    if (command.argv.includes('venv')) builds += 1;
    return runBuildCommand(command, onLine, abort);
  };
  const environments = new PythonEnvironments({
    workerPackage: PYTHON_WORKER_PACKAGE,
    eviction: ALONE,
    clock: new ManualClock(Date.now()),
    ids: randomIds,
    uv: null,
    interpreters: () => interpreters,
    run,
    ...more,
    path,
  });
  return { environments, path, runs: () => builds };
}

async function ensure(
  environments: PythonEnvironments,
  image: string,
  { owner = 'root', lines = [] as string[] } = {},
): Promise<string> {
  const found = await environments.ensure(
    { image: 'local/app', folder: image, owner },
    { onLine: (line) => lines.push(line), signal },
  );
  return found?.folder ?? assert.fail('there is no environment');
}

/** What Python prints in an environment, as an instance would run it. */
function python(environment: string, code: string): string {
  return execFileSync(join(environment, 'bin', 'python3'), ['-c', code], {
    cwd: base,
    encoding: 'utf8',
  }).trim();
}

const TINY = 'import tiny; print(tiny.VERSION)';
const PROJECT = '[project]\nname = "app"\nversion = "1"\ndependencies = ["tiny<2"]\n';
/** A project that needs no package to be built. */
const PACKAGE = {
  'pyproject.toml': `${PROJECT}[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n`,
  'mine.py': 'NAME = "mine"\n',
  'backend.py': `import zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    open("written-beside-the-source", "w").close()
    with zipfile.ZipFile(f"{folder}/app-1-py3-none-any.whl", "w") as wheel:
        wheel.write("mine.py")
        wheel.writestr("app-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: app\\nVersion: 1\\nRequires-Dist: tiny<2\\n")
        wheel.writestr("app-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("app-1.dist-info/RECORD", "mine.py,,\\napp-1.dist-info/METADATA,,\\napp-1.dist-info/WHEEL,,\\napp-1.dist-info/RECORD,,\\n")
    return "app-1-py3-none-any.whl"
`,
};

/** uv from PATH, or installed for this test; undefined without a network. */
function findUv(): string | undefined {
  const found = spawnSync('sh', ['-c', 'command -v uv'], { encoding: 'utf8' }).stdout.trim();
  if (found !== '') return found;
  const venv = join(base, 'uv');
  const script = `python3 -m venv ${venv} && ${venv}/bin/pip install -q --no-input --retries 0 --timeout 20 uv`;
  return spawnSync('sh', ['-c', script], { env: before_, stdio: 'ignore' }).status === 0
    ? join(venv, 'bin', 'uv')
    : undefined;
}

for (const tool of ['pip', 'uv'] as const) {
  describe(`environments built with ${tool}`, () => {
    let uv: string | null = null;
    const skipped = (skip: (message: string) => void): boolean => {
      if (tool === 'pip') return false;
      uv ??= findUv() ?? null;
      if (uv === null) skip('uv is not installed and could not be downloaded');
      return uv === null;
    };

    test('hold what requirements.txt names, and Berth’s worker SDK', async (context) => {
      if (skipped((message) => context.skip(message))) return;
      const { environments } = open({ uv });
      const lines: string[] = [];
      const environment = await ensure(
        environments,
        folder({ 'requirements.txt': 'tiny==1.0\nberth-worker\n' }),
        { lines },
      );
      assert.equal(python(environment, TINY), '1.0');
      assert.match(python(environment, 'import berth_worker; print(berth_worker.__file__)'), /site-packages/);
      assert.match(
        lines[0] ?? '',
        new RegExp(`^Building the Python environment: Python 3.*requirements.txt, with ${tool}`),
      );
      assert.equal(lines.at(-1), 'The Python environment is ready.');
      assert.ok(
        lines.some((line) => /tiny/.test(line)),
        lines.join('\n'),
      );
      await environments.compiled();
      assert.ok(readdirSync(join(environment, 'pycache')).length > 0, 'its modules are not compiled');
    });

    test('hold the dependencies of a pyproject.toml, and the project itself if it can be built', async (context) => {
      if (skipped((message) => context.skip(message))) return;
      const { environments } = open({ uv });
      assert.equal(python(await ensure(environments, folder({ 'pyproject.toml': PROJECT })), TINY), '1.0');
      const source = folder(PACKAGE);
      const environment = await ensure(environments, source);
      assert.equal(python(environment, 'import mine, tiny; print(mine.NAME, tiny.VERSION)'), 'mine 1.0');
      assert.equal(existsSync(join(source, 'written-beside-the-source')), false, 'the image was written to');
    });

    test('fail with the words of the tool, are not built again at once, and leave nothing', async (context) => {
      if (skipped((message) => context.skip(message))) return;
      const { environments, path, runs } = open({ uv });
      const image = folder({ 'requirements.txt': 'no-such-package-anywhere\n' });
      const expected = /could not be built: .*no-such-package-anywhere.*tried again after 30 s/s;
      await assert.rejects(ensure(environments, image), expected);
      await assert.rejects(ensure(environments, image), expected);
      assert.equal(runs(), 1);
      assert.deepEqual(readdirSync(join(path, 'root')), []);
      await assert.rejects(
        environments.prepare({ image: 'local/app', folder: image, owner: 'root' }),
        expected,
      );
      assert.equal(runs(), 2);
    });
  });
}

describe('environments', () => {
  test('are shared by folders with the same dependencies, not by accounts, and built once', async () => {
    const { environments, runs } = open();
    const files = { 'requirements.txt': 'tiny\n' };
    const [one, two, other] = await Promise.all([
      ensure(environments, folder(files)),
      ensure(environments, folder({ ...files, 'handler.py': 'print(1)' })),
      ensure(environments, folder(files), { owner: 'ann' }),
    ]);
    assert.equal(one, two);
    assert.notEqual(one, other);
    assert.equal(runs(), 2);
    assert.notEqual(await ensure(environments, folder({ 'requirements.txt': 'tiny<2\n' })), one);
    const { environments: restarted, runs: laterRuns } = open({ path: join(dirname(dirname(one))) });
    assert.equal(await ensure(restarted, folder(files)), one);
    assert.equal(laterRuns(), 0);
  });

  test('are ready before their modules are compiled, which ends with the server', async () => {
    let aborted = false;
    const { environments } = open({
      run: (command, onLine, abort) => {
        if (!command.argv.includes('compileall')) return runBuildCommand(command, onLine, abort);
        return new Promise((_, reject) =>
          abort.addEventListener('abort', () => {
            aborted = true;
            reject(abort.reason as Error);
          }),
        );
      },
    });
    await ensure(environments, folder({ 'requirements.txt': 'tiny\n' }));
    await environments.close();
    assert.ok(aborted);
  });

  test('get no secret of Berth', async () => {
    process.env['BERTH_MASTER_KEY'] = 'not for builds';
    const seen = join(base, 'seen');
    const { environments } = open();
    try {
      const files = {
        ...PACKAGE,
        'backend.py':
          `import os\nopen(${JSON.stringify(seen)}, "w").write(os.environ.get("BERTH_MASTER_KEY", ` +
          `"nothing"))\n${PACKAGE['backend.py']}`,
      };
      await ensure(environments, folder(files));
      assert.equal(execFileSync('cat', [seen], { encoding: 'utf8' }), 'nothing');
    } finally {
      delete process.env['BERTH_MASTER_KEY'];
    }
  });

  test('of a build that ended in the middle are not used, and are removed', async () => {
    const blocked = Promise.withResolvers<void>();
    const { environments, path } = open({
      run: (command, onLine, abort) => {
        if (!command.argv.includes('install')) return runBuildCommand(command, onLine, abort);
        blocked.resolve();
        return new Promise((_, reject) =>
          abort.addEventListener('abort', () => reject(abort.reason as Error)),
        );
      },
    });
    const image = folder({ 'requirements.txt': 'tiny\n' });
    const building = assert.rejects(ensure(environments, image), /the server is stopping/);
    await blocked.promise;
    // As after a crash: the folder is there, and the process that filled it is not.
    const [half] = readdirSync(join(path, 'root')).filter((name) => !name.includes('.'));
    const left = join(base, 'left');
    execFileSync('cp', ['-a', path, left]);
    writeFileSync(
      join(left, 'root', `${half}.building`),
      JSON.stringify({ pid: 1, startTicks: -1, bootId: '' }),
    );
    const { environments: later, runs } = open({ path: left });
    const built = await ensure(later, image);
    assert.equal(runs(), 1);
    await later.sweep((used) => used === built, []);
    assert.equal(existsSync(join(left, 'root', half ?? '')), false);
    assert.ok(existsSync(built));
    await environments.sweep(() => false, []);
    assert.ok(existsSync(join(path, 'root', half ?? '')), 'a build in progress was removed');
    await environments.close();
    await building;
    assert.deepEqual(readdirSync(join(path, 'root')), []);
  });

  test('are evicted when no endpoint needs them and nothing runs with them', async () => {
    const clock = new ManualClock(Date.now());
    const { environments, path } = open({ clock });
    const image = folder({ 'berth.json': JSON.stringify({ python: minor() }) });
    const built = await ensure(environments, image);
    await environments.compiled();
    clock.advance(2 * HOUR);
    await environments.sweep(() => true, []);
    await environments.sweep(() => false, [{ image: 'local/app', folder: image, owner: 'root' }]);
    assert.ok(existsSync(built));
    const other = await ensure(environments, image, { owner: 'ann' });
    await environments.sweep(() => false, [{ image: 'local/app', folder: image, owner: 'ann' }]);
    assert.equal(existsSync(built), false);
    assert.ok(existsSync(other));
    await environments.compiled();
    clock.advance(2 * HOUR);
    await environments.sweep(() => false, []);
    assert.deepEqual(readdirSync(path), [], 'the caches of an account are left');
    assert.notEqual(await ensure(environments, image), built);
  });

  test('for a Python that is not installed are refused with those that are', async () => {
    const { environments } = open({ interpreters: findInterpreters });
    const image = folder({ 'requirements.txt': 'tiny\n', '.python-version': '3.99\n' });
    await assert.rejects(
      ensure(environments, image),
      /Python 3\.99, which \.python-version asks for, is not installed on this machine; installed: 3\./,
    );
  });
});

function minor(): string {
  return execFileSync('python3', ['-c', 'import sys; print("%d.%d" % sys.version_info[:2])'], {
    encoding: 'utf8',
  }).trim();
}

describe('environments of several servers', () => {
  /** What all servers reach. */
  function sharedArchives() {
    const packed = new Map<string, Buffer>();
    const problems: string[] = [];
    const added = Promise.withResolvers<void>();
    const archives: EnvironmentArchives = {
      open: async (name) => {
        const found = packed.get(name);
        return found && Readable.from([found]);
      },
      add: async (name, content) => {
        packed.set(name, await buffer(content));
        added.resolve();
      },
      onProblem: (what, error) => void problems.push(`${what}: ${String(error)}`),
    };
    return { archives, packed, problems, added: added.promise };
  }

  test('one that a server has built is used by the next, at another path, and built by none again', async () => {
    const { archives, added, problems } = sharedArchives();
    const [one, two] = [open({ archives }), open({ archives })];
    const image = folder({ 'requirements.txt': 'tiny==1.0\n' });
    const built = await ensure(one.environments, image);
    await added;
    const lines: string[] = [];
    const fetched = await ensure(two.environments, image, { lines });
    assert.deepEqual([two.runs(), problems], [0, []], lines.join('\n'));
    assert.ok(lines.includes('Fetching the Python environment, which another server has built.'));
    assert.notEqual(fetched, built);
    await one.environments.close();
    rmSync(built, { recursive: true });
    assert.equal(python(fetched, 'import tiny, berth_worker; print(tiny.VERSION)'), '1.0');
    assert.equal(python(fetched, 'import sys; print(sys.prefix)'), fetched);
    assert.equal(existsSync(join(fetched, 'tmp')), false);
  });

  test('one that cannot be read is built, and its problem is said', async () => {
    const { archives, packed, added, problems } = sharedArchives();
    const image = folder({ 'requirements.txt': 'tiny==2.0\n' });
    await ensure(open({ archives }).environments, image);
    await added;
    for (const [name, content] of packed) packed.set(name, content.subarray(0, content.length / 2));
    const other = open({ archives });
    assert.equal(python(await ensure(other.environments, image), 'import tiny; print(tiny.VERSION)'), '2.0');
    assert.equal(other.runs(), 1);
    assert.match(problems.join(), /of another server cannot be used/);
    assert.equal(
      readdirSync(join(other.path, 'root')).filter((name) => name.endsWith('.building')).length,
      0,
    );
  });
});
