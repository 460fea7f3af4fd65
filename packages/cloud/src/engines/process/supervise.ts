import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { BerthError } from '../../support/errors.ts';
import { namesInvalidInShell } from './process-environment.ts';
import { ENVIRONMENT_FD } from './isolation/account-command.ts';
import { writeEnvironment } from './isolation/write-environment.ts';
import type { InstanceFolder, StartedProcesses } from './instance-folder.ts';

const SCRIPT = fileURLToPath(new URL('supervisor.sh', import.meta.url));
const SETSID = ['/usr/bin/setsid', '/bin/setsid'].find((path) => existsSync(path));
/** A pipe as ENVIRONMENT_FD and nothing else. */
const ENVIRONMENT_STDIO = Array.from({ length: ENVIRONMENT_FD + 1 }, (_, fd) =>
  fd === ENVIRONMENT_FD ? 'pipe' : 'ignore',
);
const POLL_INTERVAL_MS = 2;
const START_TIMEOUT_MS = 10_000;

export interface SuperviseOptions {
  folder: InstanceFolder;
  argv: readonly [string, ...string[]];
  env: Readonly<Record<string, string>>;
  /** What the command reads from ENVIRONMENT_FD. */
  environmentScript?: string;
  cgroup: string | null;
  /** Limit per process; null if the cgroup limits memory, or for no limit. */
  memoryInKb: number | null;
}

export interface SupervisedProcess {
  started: StartedProcesses;
  /** Resolves when the supervisor has ended; the instance has ended by then. */
  ended: Promise<void>;
}

/** Why processes cannot be supervised on this machine; undefined if they can. */
export function supervisionProblem(): string | undefined {
  if (process.platform !== 'linux')
    return 'processes can be run as instances on Linux only; connect a container engine instead';
  return SETSID === undefined
    ? 'the command setsid, a part of util-linux, is missing on this machine'
    : undefined;
}

/**
 * Starts an instance under its supervisor and resolves when it runs. The supervisor is a child of this
 * process, but it has its own session and no pipe to Berth, so it survives Berth.
 */
export async function supervise({
  folder,
  argv,
  env,
  environmentScript,
  cgroup,
  memoryInKb,
}: SuperviseOptions): Promise<SupervisedProcess> {
  const nonShellNames = namesInvalidInShell(env);
  const command =
    nonShellNames.length === 0
      ? argv
      : ['/usr/bin/env', ...nonShellNames.map((name) => `${name}=${env[name] ?? ''}`), ...argv];
  const args = [
    SCRIPT,
    folder.path,
    cgroup ?? '',
    memoryInKb === null ? '' : String(memoryInKb),
    SETSID ?? 'setsid',
    ...command,
  ];
  const supervisor = spawn('/bin/sh', args, {
    // The supervisor of an account's instance is Berth's own and does not work in a folder of the account.
    cwd: environmentScript === undefined ? folder.root : '/',
    env,
    detached: true,
    stdio: environmentScript === undefined ? 'ignore' : ENVIRONMENT_STDIO,
  });
  const ended = new Promise<void>((resolve) => supervisor.once('exit', () => resolve()));
  try {
    await once(supervisor, 'spawn');
  } catch (error) {
    throw new BerthError('unavailable', `the process could not be started: ${(error as Error).message}`, {
      cause: error,
    });
  }
  supervisor.unref();
  if (environmentScript !== undefined) writeEnvironment(supervisor, environmentScript);
  for (let waited = 0; waited < START_TIMEOUT_MS; waited += POLL_INTERVAL_MS) {
    const started = folder.readStarted();
    if (started !== undefined) return { started, ended };
    await pause(POLL_INTERVAL_MS);
  }
  supervisor.kill('SIGKILL');
  throw new BerthError('unavailable', 'the process could not be started: its supervisor does not answer');
}
