import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** One process of the kernel's process table. Times are in clock ticks. */
export interface ProcessEntry {
  pid: number;
  parent: number;
  group: number;
  session: number;
  /** Start time since boot. It differs for a later process with the same id. */
  startTicks: number;
  /** A zombie: it has ended, and its parent has not read the exit code yet. */
  ended: boolean;
  /** CPU time of the process and of its ended children. */
  cpuTicks: number;
}

/** The tick is 10 ms on every common Linux. */
export const TICKS_PER_SECOND = 100;

export function findProcess(pid: number): ProcessEntry | undefined {
  const stat = readProc(`${pid}/stat`);
  return stat === undefined ? undefined : parseStat(stat);
}

export function allProcesses(): ProcessEntry[] {
  return readdirSync('/proc').flatMap((name) =>
    /^\d+$/.test(name) ? (findProcess(Number(name)) ?? []) : [],
  );
}

/** The name in parentheses may contain spaces and parentheses, so fields are counted from its end. */
export function parseStat(stat: string): ProcessEntry {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const number = (field: number): number => Number(fields[field - 3]);
  return {
    pid: Number.parseInt(stat, 10),
    parent: number(4),
    group: number(5),
    session: number(6),
    startTicks: number(22),
    ended: fields[0] === 'Z' || fields[0] === 'X',
    cpuTicks: number(14) + number(15) + number(16) + number(17),
  };
}

/** The environment at its start; undefined if the process is gone or not readable. */
export function environmentOf(pid: number): Record<string, string> | undefined {
  const text = readProc(`${pid}/environ`);
  if (text === undefined) return undefined;
  const pairs = text.split('\0').filter((pair) => pair.includes('='));
  return Object.fromEntries(
    pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]),
  );
}

/** The real user of a process. Not the owner of its folder in /proc, which a process can change. */
export function userOf(pid: number): number | undefined {
  const uid = /^Uid:\s+(\d+)/m.exec(readProc(`${pid}/status`) ?? '')?.[1];
  return uid === undefined ? undefined : Number(uid);
}

/** The process namespace that a process is in, or that its children are in; empty if it is gone. */
export function processNamespaceOf(pid: number, whose: 'own' | 'children' = 'own'): string {
  return readLink(`/proc/${pid}/ns/${whose === 'own' ? 'pid' : 'pid_for_children'}`);
}

export function residentBytes(pid: number): number {
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readProc(`${pid}/status`) ?? '')?.[1];
  return Number(kilobytes ?? 0) * 1024;
}

/** The inodes of the sockets that a process has open. */
export function socketsOf(pid: number): number[] {
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).flatMap((name) => {
      const inode = /^socket:\[(\d+)\]$/.exec(readLink(`${folder}/${name}`))?.[1];
      return inode === undefined ? [] : [Number(inode)];
    });
  } catch (error) {
    if (isGone(error)) return [];
    throw error;
  }
}

/** New for each boot of the machine. */
export function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}

function readLink(path: string): string {
  try {
    return readlinkSync(path);
  } catch (error) {
    if (isGone(error)) return '';
    throw error;
  }
}

function readProc(path: string): string | undefined {
  try {
    return readFileSync(`/proc/${path}`, 'utf8');
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

/** A process may end while it is read, and processes of other users are not fully readable. */
function isGone(error: unknown): boolean {
  return ['ENOENT', 'ESRCH', 'EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '');
}
