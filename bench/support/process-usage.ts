import { readFileSync } from 'node:fs';

const TICKS_PER_SECOND = 100;
const MEGABYTE = 1024 * 1024;

/** Resident memory of a process in MB. */
export function residentMegabytes(pid: number): number {
  const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return (Number(match?.[1]) * 1024) / MEGABYTE;
}

/** Seconds of processor time that a process has used, its own and the system's for it. */
export function cpuSeconds(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}
