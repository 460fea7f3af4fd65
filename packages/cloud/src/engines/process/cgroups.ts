import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CONTAINER_PIDS } from '../../domain/placement/container-sandbox.ts';

/** The limits that the kernel enforces on an instance. */
export interface CgroupLimits {
  cpu: number;
  memoryInBytes: number;
}

/** `cpu.weight` of an instance with one core. */
const WEIGHT_OF_A_CORE = 100;
const HIGHEST_WEIGHT = 10_000;

/**
 * One cgroup (version 2) per instance, where this user may create them. All processes of a cgroup can be
 * killed at once, and limits apply where the controllers are enabled. Nothing outside Berth's own parent
 * cgroup is changed.
 */
export class Cgroups {
  readonly #path: string;

  private constructor(path: string) {
    this.#path = path;
  }

  /**
   * Berth's cgroup is created as a sibling of the cgroup that Berth runs in, not below it, where permissions
   * allow: a service manager that kills Berth's own cgroup must not kill the instances.
   */
  static open(name: string): Cgroups | undefined {
    const own = ownCgroup();
    if (own === undefined) return undefined;
    for (const parent of own.isRoot ? [own.path] : [dirname(own.path), own.path]) {
      const path = join(parent, name);
      try {
        // Moving a process needs write access to the common ancestor of both cgroups.
        accessSync(join(parent, 'cgroup.procs'), constants.W_OK);
        if (!existsSync(path)) mkdirSync(path);
        const controllers = readFileSync(join(path, 'cgroup.controllers'), 'utf8').trim().split(' ');
        const wanted = ['cpu', 'memory', 'pids']
          .filter((controller) => controllers.includes(controller))
          .map((controller) => `+${controller}`);
        if (wanted.length > 0) writeFileSync(join(path, 'cgroup.subtree_control'), wanted.join(' '));
        return new Cgroups(path);
      } catch {
        // No permission here: try the next parent.
      }
    }
    return undefined;
  }

  /** Undefined where the cgroup cannot be created: the instance then runs without one. */
  create(id: string, limits: CgroupLimits): { path: string; limitsMemory: boolean } | undefined {
    const path = join(this.#path, id);
    try {
      if (!existsSync(path)) mkdirSync(path);
      const applied = Object.entries(cgroupFiles(limits)).filter(([name, value]) => limit(path, name, value));
      return { path, limitsMemory: applied.some(([name]) => name === 'memory.max') };
    } catch {
      removeCgroup(path);
      return undefined;
    }
  }

  /** Removes Berth's own cgroup if nothing runs in it. */
  close(): void {
    removeCgroup(this.#path);
  }
}

/** What is written to the files of an instance's cgroup. */
export function cgroupFiles({ cpu, memoryInBytes }: CgroupLimits): Readonly<Record<string, string>> {
  const weight = Math.min(HIGHEST_WEIGHT, Math.max(1, Math.round(cpu * WEIGHT_OF_A_CORE)));
  return {
    'memory.max': memoryInBytes > 0 ? String(Math.round(memoryInBytes)) : 'max',
    // Out of memory kills the whole instance, so that no part of it is left running alone.
    'memory.oom.group': '1',
    'cpu.weight': String(weight),
    'pids.max': String(CONTAINER_PIDS),
  };
}

/** Returns false where the controller is not enabled. */
function limit(path: string, name: string, value: string): boolean {
  if (!existsSync(join(path, name))) return false;
  writeFileSync(join(path, name), value);
  return true;
}

/** This takes the kernel some milliseconds, so a start does not wait for it. */
export async function joinCgroup(cgroup: string, pid: number): Promise<void> {
  try {
    await writeFile(join(cgroup, 'cgroup.procs'), String(pid));
  } catch (error) {
    // The process has ended, or the cgroup was removed.
    if (!['ESRCH', 'ENOENT', 'ENODEV'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
  }
}

export function membersOfCgroup(cgroup: string): number[] {
  try {
    return readFileSync(join(cgroup, 'cgroup.procs'), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map(Number);
  } catch (error) {
    if (['ENOENT', 'ENODEV'].includes((error as NodeJS.ErrnoException).code ?? '')) return [];
    throw error;
  }
}

/** Kills all members at once, so none can escape by forking. */
export function killCgroup(cgroup: string): void {
  try {
    writeFileSync(join(cgroup, 'cgroup.kill'), '1');
  } catch {
    // Already removed, or the kernel is older than 5.14: the caller also kills each member.
  }
}

/** Returns whether the cgroup no longer exists. */
export function removeCgroup(cgroup: string): boolean {
  try {
    rmdirSync(cgroup);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
}

function ownCgroup(): { path: string; isRoot: boolean } | undefined {
  try {
    const mount = readFileSync('/proc/self/mounts', 'utf8')
      .split('\n')
      .map((line) => line.split(' '))
      .find(([, , type]) => type === 'cgroup2')?.[1];
    const own = /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1];
    if (mount === undefined || own === undefined) return undefined;
    return { path: join(mount, own), isRoot: own === '/' };
  } catch {
    return undefined;
  }
}
