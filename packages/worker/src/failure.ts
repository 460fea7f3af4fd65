import type { Identity } from './environment.ts';
import { VERSION } from './version.ts';

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
  try {
    return thrown instanceof Error ? String(thrown.message) : String(thrown);
  } catch {
    // Anything can be thrown, also what has no text.
    return Object.prototype.toString.call(thrown);
  }
}

export function typeOf(thrown: unknown): string {
  if (thrown instanceof Error) return String(thrown.name);
  return thrown === null ? 'null' : typeof thrown;
}

/** The stacks of an error and its causes. Other properties are left out: they may hold what nobody should read. */
function tracebackOf(thrown: unknown): string {
  const stacks: string[] = [];
  const seen = new Set<unknown>();
  for (let error = thrown; error instanceof Error && !seen.has(error); error = error.cause) {
    seen.add(error);
    stacks.push(error.stack ?? `${error.name}: ${error.message}`);
  }
  return stacks.join('\ncaused by ');
}
