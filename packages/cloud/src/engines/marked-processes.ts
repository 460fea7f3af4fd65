import { readdirSync, readFileSync } from 'node:fs';

/** Is in the environment of a command that runs beside an instance, and of whatever that starts: by it they are found again. */
export const EXECUTION_MARKER = 'BERTH_EXECUTION';

/** Whether a process of this machine has a variable with this value. What is gone, or not ours to see, has not. */
export function isMarked(pid: number, name: string, value: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(`${name}=${value}`);
  } catch {
    return false;
  }
}

/** Sends a signal to all processes of this machine that have this variable; answers whether there was one. */
export function signalMarked(name: string, value: string, signal: NodeJS.Signals): boolean {
  const pids = readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter((pid) => isMarked(pid, name, value));
  return pids.filter((pid) => signalProcess(pid, signal)).length > 0;
}

function signalProcess(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    // It has ended, or is not ours to end.
    return false;
  }
}
