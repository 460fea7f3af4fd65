import { execFile } from 'node:child_process';
import { access, constants, readdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { ruleError } from '../../../support/errors.ts';

/** A Python on this machine. */
export interface PythonInterpreter {
  /** Its own program, not a wrapper or a virtual environment around it. */
  path: string;
  /** All three numbers: `3.12.4`. */
  version: string;
  /** What compiled packages are made for, such as `linux-x86_64`. */
  platform: string;
}

const NAME = /^python3(?:\.\d+)?$/;
const PROBE_TIMEOUT_MS = 10_000;
const PROBE = `import json, sys, sysconfig
executable = getattr(sys, "_base_executable", sys.executable)
print(json.dumps([executable, "%d.%d.%d" % sys.version_info[:3], sysconfig.get_platform()]))`;

const run = promisify(execFile);

/**
 * The Pythons of this machine, best first: those on PATH in its order, `python3` before `python3.12`, then
 * those of pyenv. Each is asked, since a program of this name may be a wrapper that finds nothing.
 */
export async function findInterpreters(
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<PythonInterpreter[]> {
  const onPath = (env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  const pyenv = join(env['PYENV_ROOT'] ?? join(homedir(), '.pyenv'), 'versions');
  const folders = [...onPath, ...(await namesIn(pyenv)).map((name) => join(pyenv, name, 'bin'))];
  const programs = await Promise.all(
    folders.map(async (folder) =>
      (await namesIn(folder)).filter((name) => NAME.test(name)).map((name) => join(folder, name)),
    ),
  );
  const found = await Promise.all(programs.flat().map((program) => probe(program, env)));
  const byPath = new Map<string, PythonInterpreter>();
  for (const interpreter of found)
    if (interpreter !== undefined && !byPath.has(interpreter.path)) byPath.set(interpreter.path, interpreter);
  return [...byPath.values()];
}

/** The path of uv; undefined if it is not on PATH. */
export async function findUv(
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<string | undefined> {
  for (const folder of (env['PATH'] ?? '').split(delimiter)) {
    const path = join(folder, 'uv');
    try {
      await access(path, constants.X_OK);
      return path;
    } catch {
      // Not here.
    }
  }
  return undefined;
}

/** `wanted`: the first one of this version, or the first of all. */
export function chooseInterpreter(
  wanted: { wanted: string; source: string } | null,
  found: readonly PythonInterpreter[],
): PythonInterpreter {
  const chosen = found.find(
    ({ version }) => wanted === null || version === wanted.wanted || version.startsWith(`${wanted.wanted}.`),
  );
  if (chosen !== undefined) return chosen;
  const versions = [...new Set(found.map(({ version }) => version))];
  const there =
    versions.length === 0 ? 'no Python 3 was found on its PATH' : `installed: ${versions.join(', ')}`;
  throw ruleError(
    wanted === null
      ? `Python is not installed on this machine: ${there}`
      : `Python ${wanted.wanted}, which ${wanted.source} asks for, is not installed on this machine; ${there}`,
  );
}

async function probe(
  program: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<PythonInterpreter | undefined> {
  try {
    const { stdout } = await run(program, ['-I', '-c', PROBE], {
      timeout: PROBE_TIMEOUT_MS,
      env: { PATH: env['PATH'], HOME: env['HOME'] },
    });
    const [path = '', version = '', platform = ''] = JSON.parse(stdout) as string[];
    return path === '' ? undefined : { path, version, platform };
  } catch {
    return undefined;
  }
}

/** Sorted, so that `python3` comes before `python3.12`. */
async function namesIn(folder: string): Promise<string[]> {
  return (await readdir(folder).catch(() => [])).sort();
}
