import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Creates a folder that only its owner may enter, with missing parents. Not Node's recursive `mkdir`, which
 * never returns where a folder exists but cannot hold another, as below /proc.
 */
export function createPrivateDirectory(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && statSync(path).isDirectory()) return;
    if (code !== 'ENOENT' || existsSync(dirname(path))) throw error;
    createPrivateDirectory(dirname(path));
    mkdirSync(path, { mode: 0o700 });
  }
}
