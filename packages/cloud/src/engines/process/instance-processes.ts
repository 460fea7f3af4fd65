import { setTimeout as pause } from 'node:timers/promises';
import { BerthError } from '../../support/errors.ts';
import { killCgroup, membersOfCgroup } from './cgroups.ts';
import { processSnapshot } from './process-snapshot.ts';
import type { StartedProcesses } from './instance-folder.ts';
import { allProcesses, environmentOf, findProcess, type ProcessEntry } from './process-table.ts';

export interface ProcessSelector {
  /** Unique to the instance. All its processes inherit it in the variable BERTH_ROOT. */
  root: string;
  cgroup: string | null;
  started: StartedProcesses | undefined;
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
 * session, its cgroup or its environment. The environment also finds a process that started its own session
 * before it joined the cgroup, or where there is no cgroup.
 */
export function findInstanceProcesses({ root, cgroup, started }: ProcessSelector): ProcessEntry[] {
  const inCgroup = new Set(cgroup === null ? [] : membersOfCgroup(cgroup));
  const since = started?.supervisor.startTicks ?? 0;
  const session = started === undefined ? undefined : ownSession(started);
  return allProcesses().filter((process) => {
    // Processes older than the supervisor cannot belong to it. This skips most of the process table.
    if (process.ended || process.startTicks < since || process.pid === started?.supervisor.pid) return false;
    return (
      inCgroup.has(process.pid) ||
      process.pid === session ||
      process.session === session ||
      environmentOf(process.pid)?.['BERTH_ROOT'] === root
    );
  });
}

/**
 * A cheaper version for frequent calls: uses the cgroup where there is one, otherwise a shared process
 * snapshot that may be a moment old.
 */
export function recentInstanceProcesses(selector: ProcessSelector): ProcessEntry[] {
  const pids = selector.cgroup === null ? [] : membersOfCgroup(selector.cgroup);
  if (pids.length > 0) return pids.flatMap((pid) => findProcess(pid) ?? []);
  const { root, started } = selector;
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
