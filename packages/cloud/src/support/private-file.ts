import { chmodSync, readFileSync, renameSync, writeFileSync } from 'node:fs';

/** Writes a file atomically, readable by its owner only; with `flush` it is on the disk then. */
export function writePrivateFile(path: string, text: string, { flush = true } = {}): void {
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, text, { mode: 0o600, flush });
  chmodSync(draft, 0o600);
  renameSync(draft, path);
}

export function readIfExists(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
