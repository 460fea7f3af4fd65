import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BerthError } from '../../../support/errors.ts';
import { removeTree } from '../../../support/remove-tree.ts';
import { buildVariables, type RunBuildCommand } from './build-command.ts';
import type { BuildTool } from './build-tools.ts';
import type { PythonInterpreter } from './python-interpreters.ts';
import type { PythonDependencies, PythonProject } from './python-project.ts';

const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const COPY_SOURCE = script('copy-source.py');
const READ_DEPENDENCIES = script('read-dependencies.py');
const INSTALL_WORKER_PACKAGE = script('install-worker-package.py');
const RELOCATE_ENVIRONMENT = script('relocate-environment.py');
/** How many lines of output explain a failure. */
const FAILURE_LINES = 20;
const MAX_FAILURE_LENGTH = 600;
/** A handler does not import it. */
const NOT_COMPILED = '/site-packages/pip/';
/** Advertisements of pip. */
const NOTICE = /^\[notice\]|^WARNING: (?:You are using pip version|There was an error checking)/;

export interface EnvironmentBuild {
  project: PythonProject;
  interpreter: PythonInterpreter;
  tool: BuildTool;
  /** Becomes the environment. It must stay at this path: scripts in it name it. */
  folder: string;
  owner: string;
  home: string;
  /** Berth's worker SDK, which every environment has. */
  workerPackage: { folder: string; version: string };
  run: RunBuildCommand;
  onLine: (line: string) => void;
  signal: AbortSignal;
}

type RunStep = (
  argv: readonly [string, ...string[]],
  cwd?: string,
  onLine?: (line: string) => void,
) => Promise<void>;

/** Where the compiled modules of an environment are, and those of the code that runs in it. */
export function bytecodeCache(folder: string): string {
  return join(folder, 'pycache');
}

/**
 * Fills `folder`, which exists, with a folder `tmp` in it. If it rejects, the folder is not complete.
 * Everything below the folder is written by the commands, which may run as another user.
 */
export async function buildEnvironment(build: EnvironmentBuild): Promise<void> {
  const { project, interpreter, folder } = build;
  const { uv, variables } = build.tool;
  const { dependencies, installsOwnFiles } = project;
  const tmp = join(folder, 'tmp');
  const source = installsOwnFiles ? join(folder, 'source') : project.folder;
  // What the operator sets for uv comes first.
  const env = { ...variables, ...buildVariables({ home: build.home, tmp, root: folder }) };
  const command: RunStep = (argv, cwd = source, onLine = build.onLine) =>
    runStep({ ...build, onLine }, argv, cwd, env);
  const python = join(folder, 'bin', 'python3');

  await command(
    uv === undefined
      ? [interpreter.path, '-m', 'venv', '--without-pip', folder]
      : [uv, 'venv', '--quiet', '--no-project', '--allow-existing', '--python', interpreter.path, folder],
    folder,
  );
  await command(
    [python, '-I', INSTALL_WORKER_PACKAGE, build.workerPackage.folder, build.workerPackage.version],
    folder,
  );
  // A build of the project writes beside its files, and the image must not change.
  if (installsOwnFiles) await command([python, '-I', COPY_SOURCE, project.folder, source], folder);
  if (dependencies !== null) await install(build, dependencies, python, source, command);
  await removeTree(tmp);
  if (installsOwnFiles && !project.isEditable) await removeTree(source);
}

/** What is done in an environment that is unpacked or complete. */
export type EnvironmentStep = Omit<EnvironmentBuild, 'project' | 'workerPackage'>;

/** Makes an environment work that was built at another path and is unpacked in `folder`. */
export async function relocateEnvironment(build: EnvironmentStep, builtAt: string): Promise<void> {
  const { folder, home, interpreter } = build;
  const env = buildVariables({ home, tmp: folder, root: folder });
  await runStep(build, [interpreter.path, '-I', RELOCATE_ENVIRONMENT, builtAt, folder], folder, env);
}

/**
 * Compiles the modules of a complete environment, for the starts to come. It takes longer than to install them, and
 * the first start needs few of them: nobody waits for it.
 */
export async function compileEnvironment(build: EnvironmentStep): Promise<void> {
  const { folder, home } = build;
  const python = join(folder, 'bin', 'python3');
  const cache = `pycache_prefix=${bytecodeCache(folder)}`;
  await runStep(
    build,
    [python, '-X', cache, '-m', 'compileall', '-qq', '-x', NOT_COMPILED, join(folder, 'lib')],
    folder,
    buildVariables({ home, tmp: folder, root: folder }),
  ).catch(ignoreSyntaxErrors);
}

const PIP_INSTALL = [
  'install',
  '--no-input',
  '--disable-pip-version-check',
  '--progress-bar',
  'off',
  '--no-compile',
] as const;

async function install(
  { folder, tool: { uv }, interpreter }: EnvironmentBuild,
  dependencies: PythonDependencies,
  python: string,
  source: string,
  command: RunStep,
): Promise<void> {
  const installer: [string, ...string[]] =
    uv === undefined
      ? [...(await findPip(interpreter.path, python, command)), ...PIP_INSTALL]
      : [uv, 'pip', 'install', '--python', python];
  if (dependencies.file === 'requirements.txt' || (!dependencies.isPackage && uv !== undefined))
    return command([...installer, '-r', dependencies.file]);
  if (dependencies.isPackage) return command([...installer, source]);
  const list = join(folder, 'tmp', 'requirements.txt');
  await command([interpreter.path, '-I', READ_DEPENDENCIES, dependencies.file, list]);
  await command([...installer, '-r', list]);
}

/** The pip of the machine can install into an environment since 22.3, which saves seconds. */
async function findPip(
  interpreter: string,
  python: string,
  command: RunStep,
): Promise<[string, ...string[]]> {
  const shared = [interpreter, '-m', 'pip', '--python', python] as const;
  try {
    await command([...shared, '--version'], undefined, () => undefined);
    return [...shared];
  } catch (error) {
    if (!(error instanceof BerthError)) throw error;
    await command([python, '-m', 'ensurepip']);
    return [python, '-m', 'pip'];
  }
}

/** Packages may have files for other versions of Python, which do not compile. */
function ignoreSyntaxErrors(error: unknown): void {
  if (!(error instanceof BerthError && error.code === 'rule')) throw error;
}

async function runStep(
  { run, onLine, signal, owner, folder, interpreter, tool: { uv } }: EnvironmentStep,
  argv: readonly [string, ...string[]],
  cwd: string,
  env: Record<string, string>,
): Promise<void> {
  const last: string[] = [];
  const code = await run(
    { argv, cwd, env, owner, root: folder, programs: [interpreter.path, ...(uv === undefined ? [] : [uv])] },
    (line) => {
      last.push(line);
      if (last.length > FAILURE_LINES) last.shift();
      onLine(line);
    },
    signal,
  );
  if (code !== 0) throw new BerthError('rule', failureSummary(last, code));
}

/** The tool's own words, from where it says that something is wrong. */
function failureSummary(lines: readonly string[], code: number | null): string {
  const relevant = lines.filter((line) => !NOTICE.test(line)).map((line) => line.trim());
  const from = relevant.findIndex((line) => /^(?:error|×|fatal)/i.test(line));
  const text = relevant.slice(from === -1 ? -3 : from).join(' ');
  return text === '' ? `the command ended with code ${code ?? 'unknown'}` : text.slice(0, MAX_FAILURE_LENGTH);
}
