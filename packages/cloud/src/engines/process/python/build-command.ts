import { spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { setPriority } from 'node:os';
import { createInterface } from 'node:readline';
import { stripVTControlCharacters } from 'node:util';
import { killInstanceProcesses } from '../instance-processes.ts';
import { writeEnvironment } from '../isolation/write-environment.ts';

/** One command of a build. Whoever runs it decides as which user. */
export interface BuildCommand {
  argv: readonly [string, ...string[]];
  cwd: string;
  env: Readonly<Record<string, string>>;
  /** The account whose code the command may run. */
  owner: string;
  /** The folder that the build writes to. All processes of the build have it in BERTH_ROOT. */
  root: string;
  /** Programs of the machine that the command uses. */
  programs?: readonly string[];
}

/** Resolves with the exit code; null after a signal. Rejects if the command cannot be run. */
export type RunBuildCommand = (
  command: BuildCommand,
  onLine: (line: string) => void,
  signal: AbortSignal,
) => Promise<number | null>;

/** Workers and the server itself go first. */
const NICENESS = 10;
const MAX_LINE_LENGTH = 500;

/** Runs as the user that runs Berth. */
export const runBuildCommand: RunBuildCommand = ({ argv, cwd, env, root }, onLine, signal) =>
  runToEnd({ argv, cwd, env, root }, onLine, signal);

export interface BuildProcess extends Omit<BuildCommand, 'owner'> {
  /** What the command reads from ENVIRONMENT_FD, if it runs as another user. */
  environmentScript?: string;
  /** That user. */
  uid?: number;
}

/** When the signal aborts, no process of the command is left. */
export async function runToEnd(
  { argv, cwd, env, root, environmentScript, uid }: BuildProcess,
  onLine: (line: string) => void,
  signal: AbortSignal,
): Promise<number | null> {
  signal.throwIfAborted();
  const [program, ...args] = argv;
  const child = spawn(program, args, {
    cwd,
    env,
    detached: true,
    stdio: [
      'ignore',
      'pipe',
      'pipe',
      ...(environmentScript === undefined ? [] : ['ignore' as const, 'pipe' as const]),
    ],
  });
  const kill = (): void => {
    void killInstanceProcesses({ root, cgroup: null, started: undefined, uid });
  };
  if (environmentScript !== undefined) writeEnvironment(child, environmentScript);
  signal.addEventListener('abort', kill);
  try {
    const ended = new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    for (const input of [child.stdout, child.stderr] as Readable[])
      createInterface({ input }).on('line', (line) => {
        const text = stripVTControlCharacters(line).trimEnd();
        if (text !== '') onLine(text.slice(0, MAX_LINE_LENGTH));
      });
    if (child.pid !== undefined) lowerPriority(child.pid);
    const code = await ended;
    signal.throwIfAborted();
    return code;
  } finally {
    signal.removeEventListener('abort', kill);
  }
}

function lowerPriority(pid: number): void {
  try {
    setPriority(pid, NICENESS);
  } catch {
    // It has ended already.
  }
}

/** Settings of pip, uv and what they use; the rest of the operator's environment may hold secrets. */
const PASSED_ON =
  /^(?:PIP_.+|UV_.+|(?:https?|all|no)_proxy|SSL_CERT_(?:FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE)$/i;
/** These would install to another place, or with another Python. */
const NOT_PASSED_ON =
  /^(?:PIP_(?:TARGET|PREFIX|ROOT|USER|PYTHON|REQUIREMENT|CONSTRAINT|DRY_RUN|REPORT)|UV_(?:PYTHON|SYSTEM_PYTHON|TARGET|PREFIX|PROJECT.*|WORKING_DIRECTORY|DEV.*|CONSTRAINT|OVERRIDE|BREAK_SYSTEM_PACKAGES))$/;

/** The whole environment of a build. */
export function buildVariables(
  { home, tmp, root }: { home: string; tmp: string; root: string },
  operator: Readonly<Record<string, string | undefined>> = process.env,
): Record<string, string> {
  const settings = Object.entries(operator).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && PASSED_ON.test(entry[0]) && !NOT_PASSED_ON.test(entry[0]),
  );
  return {
    ...Object.fromEntries(settings),
    PATH: operator['PATH'] ?? '/usr/local/bin:/usr/bin:/bin',
    LANG: operator['LANG'] ?? 'C.UTF-8',
    HOME: home,
    TMPDIR: tmp,
    BERTH_ROOT: root,
    PYTHONUNBUFFERED: '1',
    NO_COLOR: '1',
  };
}
