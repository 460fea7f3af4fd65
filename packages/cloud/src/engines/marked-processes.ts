import { readdirSync, readFileSync } from 'node:fs';

/** Environment variable that marks a command run in an instance and every process that it starts. */
export const EXECUTION_MARKER = 'BERTH_EXECUTION';

/**
 * Whether a process of this machine has this variable with this value. False if it is gone or not readable.
 */
export function isMarked(pid: number, name: string, value: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(`${name}=${value}`);
  } catch {
    return false;
  }
}

/** Signals all processes of this machine that have this variable; returns whether there was one. */
export function signalMarked(name: string, value: string, signal: NodeJS.Signals): boolean {
  const pids = readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter((pid) => isMarked(pid, name, value));
  // All are stopped first: a shell whose child is killed before it would end by itself, with the exit code 0.
  if (signal === 'SIGKILL') for (const pid of pids) signalProcess(pid, 'SIGSTOP');
  return pids.filter((pid) => signalProcess(pid, signal)).length > 0;
}

function signalProcess(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    // It has ended, or belongs to another user.
    return false;
  }
}
