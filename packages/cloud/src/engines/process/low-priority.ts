import { writeFileSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

/**
 * How much nicer than Berth instances, builds and commands in instances are: on a busy processor it gets three times as
 * much as each of their processes.
 */
export const LOW_PRIORITY = 5;
const LOWEST = 19;

/**
 * For a process that leads a session of its own. Where the kernel divides the processor between sessions first
 * (autogroup), a nice value counts only within one, so the session gets it too.
 */
export function lowerPriority(pid: number): void {
  for (const lower of [
    () => setPriority(pid, Math.min(LOWEST, getPriority() + LOW_PRIORITY)),
    () => writeFileSync(`/proc/${pid}/autogroup`, String(LOW_PRIORITY)),
  ])
    try {
      lower();
    } catch {
      // It has ended already, or the kernel does not group by session.
    }
}
