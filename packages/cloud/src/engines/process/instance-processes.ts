import { setTimeout as pause } from 'node:timers/promises';
import { BerthError } from '../../support/errors.ts';
import { killCgroup, membersOfCgroup } from './cgroups.ts';
import { processSnapshot } from './process-snapshot.ts';
import type { StartedProcesses } from './instance-folder.ts';
import { allProcesses, environmentOf, findProcess, type ProcessEntry } from './process-table.ts';

export interface ProcessSelector {
  /** Unique to the instance, and in the environment of whatever it starts. */
  root: string;
  cgroup: string | null;
  started: StartedProcesses | undefined;
}

const MIN_WAIT_MS = 2;
const MAX_WAIT_MS = 50;
const KILL_TIMEOUT_MS = 10_000;

/** The very process, and not a later one that got its number. */
export function isAlive({ pid, startTicks }: Pick<ProcessEntry, 'pid' | 'startTicks'>): boolean {
  const found = findProcess(pid);
  return found?.startTicks === startTicks && !found.ended;
}

/**
 * The living processes of an instance, its supervisor not counted. One belongs to it by its
 * session, its cgroup, or its environment: so also one that went into a session of its own
 * before it was in the cgroup, or where there is none.
 */
export function findInstanceProcesses({ root, cgroup, started }: ProcessSelector): ProcessEntry[] {
  const inCgroup = new Set(cgroup === null ? [] : membersOfCgroup(cgroup));
  const since = started?.supervisor.startTicks ?? 0;
  const session = started === undefined ? undefined : ownSession(started);
  return allProcesses().filter((process) => {
    // Whatever was there before the supervisor is not ours: this spares a look at most of the machine.
    if (process.ended || process.startTicks < since || process.pid === started?.supervisor.pid) return false;
    return (
      inCgroup.has(process.pid) ||
      process.pid === session ||
      process.session === session ||
      environmentOf(process.pid)?.['BERTH_ROOT'] === root
    );
  });
}

/** The same for a look in passing: by the cgroup where there is one, or else by a look at the machine that is shared and may be a moment old. */
export function recentInstanceProcesses(belonging: ProcessSelector): ProcessEntry[] {
  const pids = belonging.cgroup === null ? [] : membersOfCgroup(belonging.cgroup);
  if (pids.length > 0) return pids.flatMap((pid) => findProcess(pid) ?? []);
  const { root, started } = belonging;
  const { byRoot, bySession } = processSnapshot();
  const session = started === undefined ? undefined : ownSession(started);
  const found = [
    ...(byRoot.get(root) ?? []),
    ...(session === undefined ? [] : (bySession.get(session) ?? [])),
  ];
  const members = new Map(found.map((process) => [process.pid, process]));
  if (started !== undefined) members.delete(started.supervisor.pid);
  return [...members.values()].filter(
    ({ startTicks }) => startTicks >= (started?.supervisor.startTicks ?? 0),
  );
}

/** The number of a session says whose it is as long as its leader is there; after that it may be given again. */
function ownSession({ child }: StartedProcesses): number | undefined {
  return findProcess(child.pid)?.startTicks === child.startTicks ? child.pid : undefined;
}

/** Ends all of them, those that they start meanwhile too. */
export async function killInstanceProcesses(belonging: ProcessSelector): Promise<void> {
  const since = performance.now();
  for (let wait = MIN_WAIT_MS; ; wait = Math.min(2 * wait, MAX_WAIT_MS)) {
    const members = findInstanceProcesses(belonging);
    if (members.length === 0) return;
    if (performance.now() - since > KILL_TIMEOUT_MS)
      throw new BerthError(
        'unavailable',
        `the kernel does not end process ${members.map(({ pid }) => pid).join(', ')}`,
      );
    if (belonging.cgroup !== null) killCgroup(belonging.cgroup);
    for (const { pid } of members) sendSignal(pid, 'SIGKILL');
    await pause(wait);
  }
}

/** Answers whether there was somebody to get it. A negative number is a group. */
export function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}
