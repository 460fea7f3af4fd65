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

/** What the kernel is to hold an instance to. */
export interface CgroupLimits {
  cpu: number;
  memoryInBytes: number;
}

/** The weight of an instance of one core. */
const WEIGHT_OF_A_CORE = 100;
const HIGHEST_WEIGHT = 10_000;

/**
 * A cgroup (version 2) for each instance, where this user may make some: it can be ended as a
 * whole, and limited where its controllers are switched on. Nothing outside Berth's own branch
 * is changed.
 */
export class Cgroups {
  readonly #branch: string;

  private constructor(branch: string) {
    this.#branch = branch;
  }

  /**
   * The branch hangs beside the cgroup that Berth runs in and not below it, if that can be: a
   * service manager that ends Berth's cgroup must not take the instances with it.
   */
  static open(name: string): Cgroups | undefined {
    const own = ownCgroup();
    if (own === undefined) return undefined;
    for (const place of own.isRoot ? [own.path] : [dirname(own.path), own.path]) {
      const branch = join(place, name);
      try {
        // Whoever moves a process needs to write to the nearest cgroup that both ends share.
        accessSync(join(place, 'cgroup.procs'), constants.W_OK);
        if (!existsSync(branch)) mkdirSync(branch);
        const controllers = readFileSync(join(branch, 'cgroup.controllers'), 'utf8').trim().split(' ');
        const wanted = ['cpu', 'memory', 'pids']
          .filter((controller) => controllers.includes(controller))
          .map((controller) => `+${controller}`);
        if (wanted.length > 0) writeFileSync(join(branch, 'cgroup.subtree_control'), wanted.join(' '));
        return new Cgroups(branch);
      } catch {
        // Not ours to write here.
      }
    }
    return undefined;
  }

  /** Tells whether memory is limited by it. Undefined where it cannot be made: an instance runs without it too. */
  create(
    id: string,
    { cpu, memoryInBytes }: CgroupLimits,
  ): { path: string; limitsMemory: boolean } | undefined {
    const path = join(this.#branch, id);
    const weight = Math.min(HIGHEST_WEIGHT, Math.max(1, Math.round(cpu * WEIGHT_OF_A_CORE)));
    try {
      if (!existsSync(path)) mkdirSync(path);
      const limitsMemory = limit(
        path,
        'memory.max',
        memoryInBytes > 0 ? String(Math.round(memoryInBytes)) : 'max',
      );
      // When memory runs out, all of it ends and not some part without which the rest is of no use.
      limit(path, 'memory.oom.group', '1');
      limit(path, 'cpu.weight', String(weight));
      return { path, limitsMemory };
    } catch {
      removeCgroup(path);
      return undefined;
    }
  }

  /** Takes Berth's own branch away if nothing runs in it. */
  close(): void {
    removeCgroup(this.#branch);
  }
}

/** Answers whether there is a controller for it. */
function limit(path: string, name: string, value: string): boolean {
  if (!existsSync(join(path, name))) return false;
  writeFileSync(join(path, name), value);
  return true;
}

/** Takes some milliseconds in the kernel, so it is never waited for on the way to a running instance. */
export async function joinCgroup(cgroup: string, pid: number): Promise<void> {
  try {
    await writeFile(join(cgroup, 'cgroup.procs'), String(pid));
  } catch (error) {
    // It has ended meanwhile.
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

/** Everything in it, in one stroke: nothing can be forked away from it. */
export function killCgroup(cgroup: string): void {
  try {
    writeFileSync(join(cgroup, 'cgroup.kill'), '1');
  } catch {
    // Gone, or a kernel older than 5.14: its members are ended one by one then.
  }
}

/** Answers whether it is gone. */
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
