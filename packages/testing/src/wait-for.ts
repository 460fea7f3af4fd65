import { setImmediate } from 'node:timers/promises';

/** The first look comes soon; who waits for long does not keep the machine busy with looking. */
const FIRST_INTERVAL_MS = 10;
const LONGEST_INTERVAL_MS = 80;
const INTERVAL_GROWTH = 1.25;

/**
 * Checks until the value is there, for states that other processes bring about and that have no event to
 * wait for.
 */
export async function waitFor<T>(
  what: string,
  check: () => Promise<T | undefined | false> | T | undefined | false,
  withinMs = 20_000,
): Promise<T> {
  const end = Date.now() + withinMs;
  for (let intervalMs = FIRST_INTERVAL_MS; ; intervalMs = nextInterval(intervalMs)) {
    const found = await check();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > end) throw new Error(`not within ${withinMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, intervalMs));
  }
}

/** Checks until the assertions hold. After the time limit the last failure is thrown. */
export async function waitUntilPasses<T>(check: () => Promise<T> | T, withinMs = 10_000): Promise<T> {
  const end = Date.now() + withinMs;
  for (let intervalMs = FIRST_INTERVAL_MS; ; intervalMs = nextInterval(intervalMs)) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > end) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, intervalMs));
  }
}

function nextInterval(intervalMs: number): number {
  return Math.min(intervalMs * INTERVAL_GROWTH, LONGEST_INTERVAL_MS);
}

/** Whether a promise has an outcome once everything that is ready to run has run. */
export async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const settle = (): void => void (settled = true);
  promise.then(settle, settle);
  for (let turn = 0; turn < 3; turn += 1) await setImmediate();
  return settled;
}
