import type { Identity } from './environment.ts';
import { VERSION } from './version.ts';

const UNREADABLE = 'what was thrown cannot be read';

/** The text that a job's `error` is when its handler threw: JSON, with the keys that the public worker SDK uses. */
export function failureText(thrown: unknown, { hostname, workerId }: Identity): string {
  return JSON.stringify({
    error_type: typeOf(thrown),
    error_message: messageOf(thrown),
    error_traceback: tracebackOf(thrown),
    hostname,
    worker_id: workerId,
    berth_version: VERSION,
  });
}

export function messageOf(thrown: unknown): string {
  return (
    read(() => (thrown instanceof Error ? String(thrown.message) : String(thrown))) ??
    read(() => Object.prototype.toString.call(thrown)) ??
    UNREADABLE
  );
}

export function typeOf(thrown: unknown): string {
  return (
    read(() => (thrown instanceof Error ? String(thrown.name) : undefined)) ??
    (thrown === null ? 'null' : typeof thrown)
  );
}

/** The stacks of an error and its causes. Other properties are left out: they may hold what nobody should read. */
function tracebackOf(thrown: unknown): string {
  const stacks: string[] = [];
  const seen = new Set<unknown>();
  try {
    for (let error = thrown; error instanceof Error && !seen.has(error); error = error.cause) {
      seen.add(error);
      stacks.push(String(error.stack ?? `${error.name}: ${error.message}`));
    }
  } catch {
    stacks.push(UNREADABLE);
  }
  return stacks.join('\ncaused by ');
}

/** Anything can be thrown, also what has no text, or what throws when it is looked at. */
function read<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}
