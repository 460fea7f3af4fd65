import { setTimeout as pause } from 'node:timers/promises';
import { BerthError } from '../../support/errors.ts';
import { killCgroup, membersOfCgroup } from './cgroups.ts';
import { processSnapshot } from './process-snapshot.ts';
import type { StartedProcesses } from './instance-folder.ts';
import {
  allProcesses,
  environmentOf,
  findProcess,
  type ProcessEntry,
  processNamespaceOf,
  userOf,
} from './process-table.ts';

export interface ProcessSelector {
  /** Unique to the instance. All its processes inherit it in the variable BERTH_ROOT. */
  root: string;
  cgroup: string | null;
  started: StartedProcesses | undefined;
  /** The account's user; undefined if the instance runs as the user that runs Berth. */
  uid?: number | undefined;
  /** Whether the instance has a process namespace of its own. */
  namespaces?: boolean;
}

const MIN_WAIT_MS = 2;
const MAX_WAIT_MS = 50;
const KILL_TIMEOUT_MS = 10_000;

/** Compares start times too: process ids are reused. */
export function isAlive({ pid, startTicks }: Pick<ProcessEntry, 'pid' | 'startTicks'>): boolean {
  const found = findProcess(pid);
  return found?.startTicks === startTicks && !found.ended;
}

/**
 * The live processes of an instance, without its supervisor. A process belongs to the instance by its
 * namespace, its session, its cgroup or its environment. The environment also finds a process that started
 * its own session before it joined the cgroup, or where there is no cgroup. Any process can have any
 * environment, so that counts only for processes of the right user.
 */
export function findInstanceProcesses(selector: ProcessSelector): ProcessEntry[] {
  const { root, cgroup, started } = selector;
  const namespace = namespaceOf(selector);
  const inCgroup = new Set(cgroup === null ? [] : membersOfCgroup(cgroup));
  const since = started?.supervisor.startTicks ?? 0;
  const session = started === undefined ? undefined : ownSession(started);
  return allProcesses().filter((process) => {
    // Processes older than the supervisor cannot belong to it. This skips most of the process table.
    if (process.ended || process.startTicks < since || process.pid === started?.supervisor.pid) return false;
    // The output writer, which has the supervisor's environment until it runs its own program.
    if (process.session === started?.supervisor.session && process.pid !== started.child.pid) return false;
    return (
      inCgroup.has(process.pid) ||
      process.pid === session ||
      process.session === session ||
      (namespace !== undefined && processNamespaceOf(process.pid) === namespace) ||
      (environmentOf(process.pid)?.['BERTH_ROOT'] === root && isUserOf(selector, process.pid))
    );
  });
}

/** The first process in the instance's namespace, and the command that it runs. */
export function findSandboxProcesses(
  selector: ProcessSelector,
): { init: ProcessEntry; command: ProcessEntry } | undefined {
  const { started } = selector;
  const namespace = namespaceOf(selector);
  if (started === undefined || namespace === undefined) return undefined;
  const members = allProcesses().filter(({ pid }) => processNamespaceOf(pid) === namespace);
  const init = members.find(({ parent }) => parent === started.child.pid);
  const [command] = members
    .filter(({ parent, ended }) => parent === init?.pid && !ended)
    .sort((one, other) => one.startTicks - other.startTicks || one.pid - other.pid);
  return init === undefined || command === undefined ? undefined : { init, command };
}

/** Undefined if it has none, or if its session leader, which made it, is gone. */
function namespaceOf({ namespaces, started }: ProcessSelector): string | undefined {
  if (namespaces !== true || started === undefined || !isAlive(started.child)) return undefined;
  const namespace = processNamespaceOf(started.child.pid, 'children');
  // Not yet separated, right after the start.
  return namespace === '' || namespace === processNamespaceOf(process.pid) ? undefined : namespace;
}

/** Programs that Berth runs for an account's instance, such as its supervisor, are Berth's own. */
function isUserOf({ uid }: ProcessSelector, pid: number): boolean {
  const user = userOf(pid);
  return user === process.getuid?.() || (uid !== undefined && user === uid);
}

/**
 * A cheaper version for frequent calls: uses the cgroup where there is one, otherwise a shared process
 * snapshot that may be a moment old.
 */
export function recentInstanceProcesses(selector: ProcessSelector): ProcessEntry[] {
  const pids = selector.cgroup === null ? [] : membersOfCgroup(selector.cgroup);
  if (pids.length > 0) return pids.flatMap((pid) => findProcess(pid) ?? []);
  const { root, started } = selector;
  const { byRoot, bySession, byNamespace } = processSnapshot();
  const namespace = namespaceOf(selector);
  const session = started === undefined ? undefined : ownSession(started);
  const found = [
    ...(byRoot.get(root) ?? []).filter(({ pid }) => isUserOf(selector, pid)),
    ...(namespace === undefined ? [] : (byNamespace().get(namespace) ?? [])),
    ...(session === undefined ? [] : (bySession.get(session) ?? [])),
  ];
  const members = new Map(found.map((process) => [process.pid, process]));
  if (started !== undefined) members.delete(started.supervisor.pid);
  return [...members.values()].filter(
    ({ startTicks }) => startTicks >= (started?.supervisor.startTicks ?? 0),
  );
}

/** A session id identifies the instance only while its leader exists; later it may be reused. */
function ownSession({ child }: StartedProcesses): number | undefined {
  return findProcess(child.pid)?.startTicks === child.startTicks ? child.pid : undefined;
}

/** Kills all processes of the instance, including those started meanwhile. */
export async function killInstanceProcesses(selector: ProcessSelector): Promise<void> {
  const since = performance.now();
  for (let wait = MIN_WAIT_MS; ; wait = Math.min(2 * wait, MAX_WAIT_MS)) {
    const members = findInstanceProcesses(selector);
    if (members.length === 0) return;
    if (performance.now() - since > KILL_TIMEOUT_MS)
      throw new BerthError(
        'unavailable',
        `the kernel does not end process ${members.map(({ pid }) => pid).join(', ')}`,
      );
    if (selector.cgroup !== null) killCgroup(selector.cgroup);
    for (const { pid } of members) sendSignal(pid, 'SIGKILL');
    await pause(wait);
  }
}

/** Returns false if there is no such process. A negative pid is a process group. */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}
