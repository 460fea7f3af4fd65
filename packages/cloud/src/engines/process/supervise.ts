import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { BerthError } from '../../support/errors.ts';
import { unshellable } from './environment.ts';
import type { InstanceFolder, Started } from './instance-folder.ts';

const SCRIPT = fileURLToPath(new URL('supervisor.sh', import.meta.url));
const SETSID = ['/usr/bin/setsid', '/bin/setsid'].find((path) => existsSync(path));
const LOOK_EVERY_MS = 2;
const GIVE_UP_AFTER_MS = 10_000;

export interface Supervision {
  folder: InstanceFolder;
  argv: readonly [string, ...string[]];
  env: Readonly<Record<string, string>>;
  cgroup: string | null;
  /** For one process; null where something else sees to it. */
  memoryInKb: number | null;
}

export interface Supervised {
  started: Started;
  /** Resolves when the supervisor has ended, and so the instance. */
  ended: Promise<void>;
}

/** Why this machine has no supervisor for instances; undefined where it has one. */
export function supervisionProblem(): string | undefined {
  if (process.platform !== 'linux')
    return 'processes can be run as instances on Linux only; connect a container engine instead';
  return SETSID === undefined
    ? 'the command setsid, a part of util-linux, is missing on this machine'
    : undefined;
}

/**
 * Starts an instance under its supervisor. Resolves when it runs. The supervisor is a child of
 * this process, but in a session of its own and with no pipe to it: it goes on without us.
 */
export async function supervise({ folder, argv, env, cgroup, memoryInKb }: Supervision): Promise<Supervised> {
  const named = unshellable(env);
  const command =
    named.length === 0
      ? argv
      : ['/usr/bin/env', ...named.map((name) => `${name}=${env[name] ?? ''}`), ...argv];
  const args = [
    SCRIPT,
    folder.path,
    cgroup ?? '',
    memoryInKb === null ? '' : String(memoryInKb),
    SETSID ?? 'setsid',
    ...command,
  ];
  const supervisor = spawn('/bin/sh', args, { cwd: folder.root, env, detached: true, stdio: 'ignore' });
  const ended = new Promise<void>((resolve) => supervisor.once('exit', () => resolve()));
  try {
    await once(supervisor, 'spawn');
  } catch (error) {
    throw new BerthError('unavailable', `the process could not be started: ${(error as Error).message}`, {
      cause: error,
    });
  }
  supervisor.unref();
  for (let waited = 0; waited < GIVE_UP_AFTER_MS; waited += LOOK_EVERY_MS) {
    const started = folder.started();
    if (started !== undefined) return { started, ended };
    await pause(LOOK_EVERY_MS);
  }
  supervisor.kill('SIGKILL');
  throw new BerthError('unavailable', 'the process could not be started: its supervisor does not answer');
}
