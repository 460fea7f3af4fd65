import type { WorkerIdentity } from './worker-environment.ts';
import { VERSION } from './version.ts';

const UNREADABLE_ERROR = 'what was thrown cannot be read';

/** The text of a job's `error` when its handler threw: JSON with the keys that the public worker SDK uses. */
export function errorReport(thrown: unknown, { hostname, workerId }: WorkerIdentity): string {
  return JSON.stringify({
    error_type: errorType(thrown),
    error_message: errorMessage(thrown),
    error_traceback: tracebackOf(thrown),
    hostname,
    worker_id: workerId,
    berth_version: VERSION,
  });
}

export function errorMessage(thrown: unknown): string {
  return (
    readSafely(() => (thrown instanceof Error ? String(thrown.message) : String(thrown))) ??
    readSafely(() => Object.prototype.toString.call(thrown)) ??
    UNREADABLE_ERROR
  );
}

export function errorType(thrown: unknown): string {
  return (
    readSafely(() => (thrown instanceof Error ? String(thrown.name) : undefined)) ??
    (thrown === null ? 'null' : typeof thrown)
  );
}

/** The stacks of an error and its causes. Other properties are left out: they may hold secrets. */
function tracebackOf(thrown: unknown): string {
  const stacks: string[] = [];
  const seen = new Set<unknown>();
  try {
    for (let error = thrown; error instanceof Error && !seen.has(error); error = error.cause) {
      seen.add(error);
      stacks.push(String(error.stack ?? `${error.name}: ${error.message}`));
    }
  } catch {
    stacks.push(UNREADABLE_ERROR);
  }
  return stacks.join('\ncaused by ');
}

/** Anything can be thrown, including values that have no text or that throw when they are read. */
function readSafely<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}
