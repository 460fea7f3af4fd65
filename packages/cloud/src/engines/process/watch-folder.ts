import { watch } from 'node:fs';

const POLL_INTERVAL_MS = 250;

/**
 * Calls back when a file in the folder changes, until closed. Polls if the machine has no inotify watches
 * left.
 */
export function watchFolder(path: string, onChange: () => void): { close(): void } {
  try {
    const watcher = watch(path, onChange);
    watcher.on('error', () => watcher.close());
    return watcher;
  } catch {
    const timer = setInterval(onChange, POLL_INTERVAL_MS);
    return { close: () => clearInterval(timer) };
  }
}
