import { buildVariables, type RunBuildCommand } from './build-command.ts';
import { uvVariables } from './pip-settings.ts';
import { findUv, type PythonInterpreter } from './python-interpreters.ts';
import type { UvProgram } from './uv-program.ts';

/** What installs the packages of an environment. */
export interface BuildTool {
  /** The path of uv; undefined to use venv and pip. */
  uv: string | undefined;
  variables: Readonly<Record<string, string>>;
}

export interface BuildToolsOptions {
  /** The path of uv; null to do without. Default: from PATH. */
  uv?: string | null | undefined;
  /** Installs uv where it is not on PATH. */
  ownUv?: UvProgram | undefined;
  run: RunBuildCommand;
}

interface Place {
  folder: string;
  home: string;
  tmp: string;
  owner: string;
}

const PIP: BuildTool = { uv: undefined, variables: {} };

/**
 * The tools to build an environment with, the first that succeeds. A uv of the machine is the operator's choice.
 * One that Berth installed only saves time: where it fails, pip has the last word.
 */
export async function findBuildTools(
  { uv, ownUv, run }: BuildToolsOptions,
  interpreter: PythonInterpreter,
  { folder, home, tmp, owner }: Place,
  onLine: (line: string) => void,
  signal: AbortSignal,
): Promise<readonly [BuildTool, BuildTool?]> {
  const machineUv = uv === undefined ? await findUv() : (uv ?? undefined);
  if (machineUv !== undefined) return [{ uv: machineUv, variables: {} }];
  if (ownUv === undefined) return [PIP];
  const settings: string[] = [];
  const code = await run(
    {
      argv: [interpreter.path, '-m', 'pip', 'config', 'list'],
      cwd: folder,
      env: buildVariables({ home, tmp, root: folder }),
      owner,
      root: folder,
      programs: [interpreter.path],
    },
    (line) => settings.push(line),
    signal,
  );
  const variables = code === 0 ? uvVariables(settings) : undefined;
  if (variables === undefined) return [PIP];
  const installed = await ownUv.ensure(interpreter, onLine, signal);
  return installed === undefined ? [PIP] : [{ uv: installed, variables }, PIP];
}
