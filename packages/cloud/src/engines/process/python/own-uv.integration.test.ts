import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { writeWheel } from '../../../../../testing/src/python-wheel.ts';
import { ManualClock } from '../../../support/clock.ts';
import { randomIds } from '../../../support/ids.ts';
import { PYTHON_WORKER_PACKAGE } from '../../../support/program-files.ts';
import { findInterpreters } from './python-interpreters.ts';
import { PythonEnvironments } from './python-environments.ts';

/** Makes environments as uv does, notes what it was called with, and cannot install what is called `odd`. */
const UV = `
import os, subprocess, sys
with open(os.environ["TMPDIR"] + "/../../../uv.log", "a") as log:
    print(sys.argv[1:3], os.environ.get("UV_FIND_LINKS"), file=log)
python = sys.argv[sys.argv.index("--python") + 1]
if sys.argv[1] == "venv":
    sys.exit(subprocess.call([python, "-m", "venv", "--without-pip", sys.argv[-1]]))
if "odd" in open("requirements.txt").read():
    sys.exit("error: it is odd")
sys.exit(subprocess.call([sys.executable, "-m", "pip", "--python", python, "install", "-r", "requirements.txt"]))
`;

describe('environments on a machine without uv', () => {
  let base: string;
  let wheels: string;
  const clock = new ManualClock(Date.now());
  const interpreters = findInterpreters();
  const saved = { ...process.env };

  before(() => {
    base = mkdtempSync(join(tmpdir(), 'berth-uv-'));
    wheels = join(base, 'wheels');
    for (const name of ['tiny', 'odd']) writeWheel(wheels, name, '1.0', '');
    Object.assign(process.env, {
      PIP_NO_INDEX: '1',
      PIP_FIND_LINKS: wheels,
      PATH: withoutUv(process.env['PATH'] ?? ''),
    });
    delete process.env['UV_FIND_LINKS'];
  });
  after(() => {
    for (const name of ['PIP_NO_INDEX', 'PIP_FIND_LINKS', 'UV_FIND_LINKS', 'PATH'])
      if (saved[name] === undefined) delete process.env[name];
      else process.env[name] = saved[name];
    rmSync(base, { recursive: true, force: true, maxRetries: 10 });
  });

  const path = (): string => join(base, 'environments');
  const build = async (environments: PythonEnvironments, requirements: string): Promise<string[]> => {
    const folder = join(base, requirements);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'requirements.txt'), `${requirements}\n`);
    const lines: string[] = [];
    const built = await environments.ensure(
      { image: 'local/app', folder, owner: 'root' },
      { onLine: (line) => lines.push(line), signal: new AbortController().signal },
    );
    assert.ok(built !== undefined && existsSync(join(built.folder, 'bin/python3')));
    await environments.compiled();
    return lines.filter((line) => /^(?:Installing uv|uv could|Building|The Python)/.test(line));
  };
  const open = (): PythonEnvironments =>
    new PythonEnvironments({
      path: path(),
      workerPackage: PYTHON_WORKER_PACKAGE,
      eviction: { keepMs: 0, maxBytes: Infinity },
      clock,
      ids: randomIds,
      installUv: true,
      interpreters: () => interpreters,
    });

  test('are built with pip where uv cannot be installed, and with a uv that has pip’s settings where it can', async () => {
    const environments = open();
    const [first, second, third] = await build(environments, 'tiny==1.0');
    assert.match(first ?? '', /^Installing uv/);
    assert.match(second ?? '', /^uv could not be installed; pip is used/);
    assert.match(third ?? '', /with pip/);
    assert.match((await build(environments, 'tiny<2'))[0] ?? '', /with pip/);
    clock.advance(3_600_000);
    writeWheel(wheels, 'uv', '1.0', '', UV);
    const lines = await build(environments, 'tiny<3');
    assert.match(lines[0] ?? '', /^Installing uv/);
    assert.match(lines[1] ?? '', /with uv/);
    const log = readFileSync(join(path(), 'uv.log'), 'utf8');
    assert.ok(log.trim().endsWith(`['pip', 'install'] ${wheels}`), log);
  });

  test('are built with pip where that uv fails', async () => {
    const lines = await build(open(), 'odd');
    assert.match(lines[0] ?? '', /with uv/);
    assert.deepEqual(
      lines.slice(1).map((line) => /pip tries it|with pip|is ready/.exec(line)?.[0]),
      ['pip tries it', 'with pip', 'is ready'],
    );
  });

  test('do not lose uv when those that are not used are removed', async () => {
    await open().sweep(() => false, []);
    assert.ok(existsSync(join(path(), '.uv/bin/uv')));
  });
});

function withoutUv(path: string): string {
  return path
    .split(':')
    .filter((folder) => !existsSync(join(folder, 'uv')))
    .join(':');
}
