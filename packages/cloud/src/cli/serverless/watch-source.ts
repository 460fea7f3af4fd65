import { watch } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { CliError } from '../cli.errors.ts';

/** An editor writes a file in several steps; they count as one change. */
const DEBOUNCE_MS = 150;

/**
 * Calls `changed` when watching has started and after each change, one call at a time, until the signal
 * aborts.
 */
export async function watchSourceFolder(
  folder: string,
  changed: () => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const dirty = { is: true };
  let wake = (): void => undefined;
  const watching = watchChanges(folder, signal, () => {
    dirty.is = true;
    wake();
  });
  const stopped = new Promise<void>((resolve) =>
    signal.addEventListener('abort', () => resolve(), { once: true }),
  );
  while (!signal.aborted) {
    if (!dirty.is) {
      await Promise.race([new Promise<void>((resolve) => (wake = resolve)), stopped, watching]);
      continue;
    }
    await pause(DEBOUNCE_MS, undefined, { signal }).catch(() => undefined);
    dirty.is = false;
    if (!signal.aborted) await changed();
  }
  await watching;
}

async function watchChanges(folder: string, signal: AbortSignal, changed: () => void): Promise<void> {
  try {
    for await (const _ of watch(folder, { recursive: true, signal })) changed();
    throw new CliError(`${folder} can no longer be watched`);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
