import { setTimeout as pause } from 'node:timers/promises';
import { BerthError } from '../../support/errors.ts';
import type { Execution, ExecutionOptions } from '../instance.ts';
import { joinCgroup } from './cgroups.ts';
import type { InstanceFolder, SavedInstance, StartedProcesses } from './instance-folder.ts';
import { findSandboxProcesses, type ProcessSelector } from './instance-processes.ts';
import { asUser, inCgroup, inSandbox } from './isolation/account-command.ts';
import { startExecution } from './process-execution.ts';
import { environmentOf, type ProcessEntry, userOf } from './process-table.ts';

/** How long a command waits for a sandbox that is being made. */
const SANDBOX_TIMEOUT_MS = 10_000;
const SANDBOX_POLL_INTERVAL_MS = 5;

/** The instance that a command runs in. */
export interface CommandTarget {
  saved: SavedInstance;
  folder: InstanceFolder;
  started: StartedProcesses;
  selector: ProcessSelector;
  /** Its environment; undefined for an adopted instance, whose processes have it. */
  env: Readonly<Record<string, string>> | undefined;
  isRunning(): boolean;
}

/** Runs a command in an instance: as its user, in its sandbox and its cgroup. */
export async function startInstanceCommand(
  target: CommandTarget,
  argv: readonly string[],
  { tty, env: added }: ExecutionOptions,
): Promise<Execution> {
  const { saved, folder } = target;
  const sandbox = saved.namespaces === true ? await waitForSandbox(target) : undefined;
  const own = target.env ?? environmentOf(environmentPid(target, sandbox));
  if (!target.isRunning() || own === undefined) throw notRunning(target);
  const asTenant = tenantCommand(target, sandbox);
  const { pid, execution } = await startExecution({
    argv,
    cwd: folder.root,
    env: { ...own, ...added },
    ...(tty === undefined ? {} : { tty }),
    ...(asTenant === undefined ? {} : { asTenant }),
  });
  if (saved.cgroup !== null && asTenant === undefined) await joinCgroup(saved.cgroup, pid);
  return execution;
}

function notRunning({ saved }: CommandTarget): BerthError {
  return new BerthError('state', `${saved.id} does not run`);
}

/**
 * The processes of a sandbox that is complete: its command runs as the account's user. Before that its first
 * process still sees the files of the machine.
 */
export async function waitForSandbox(
  target: CommandTarget,
): Promise<{ init: ProcessEntry; command: ProcessEntry }> {
  const since = performance.now();
  while (target.isRunning() && performance.now() - since < SANDBOX_TIMEOUT_MS) {
    const found = findSandboxProcesses(target.selector);
    if (found !== undefined && userOf(found.command.pid) === target.saved.user?.uid) return found;
    await pause(SANDBOX_POLL_INTERVAL_MS);
  }
  throw notRunning(target);
}

function tenantCommand(
  { saved: { user, cgroup }, folder: { root } }: CommandTarget,
  sandbox: { init: ProcessEntry } | undefined,
): ((command: readonly string[]) => readonly string[]) | undefined {
  if (user === undefined) return undefined;
  return (command) => {
    const argv =
      sandbox === undefined ? asUser(user, root, command) : inSandbox(sandbox.init.pid, root, user, command);
    return cgroup === null ? argv : inCgroup(cgroup, argv);
  };
}

/** The process whose environment is the instance's. The supervisor of an account's instance has Berth's own. */
function environmentPid(
  { saved, started: { supervisor, child } }: CommandTarget,
  sandbox: { command: ProcessEntry } | undefined,
): number {
  return saved.user === undefined ? supervisor.pid : (sandbox?.command ?? child).pid;
}
