import { watch } from 'node:fs';

const POLL_INTERVAL_MS = 250;

/** Tells when a file in a folder changed, until it is closed. Where the machine has no more watches to give, looks again and again. */
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
