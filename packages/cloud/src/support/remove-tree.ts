import { chmod, lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isPermissionError } from './permission-error.ts';

/**
 * Removes a folder with its content, if it exists. Some programs leave read-only folders, such as module
 * caches: those are made writable first. Rejects if something belongs to another user.
 */
export async function removeTree(path: string): Promise<void> {
  try {
    await remove(path);
  } catch (error) {
    if (!isPermissionError(error)) throw error;
    await makeWritable(path);
    await remove(path);
  }
}

function remove(path: string): Promise<void> {
  return rm(path, { recursive: true, force: true, maxRetries: 3 });
}

/** Does not follow links: their targets are not part of the tree. */
async function makeWritable(path: string): Promise<void> {
  try {
    if (!(await lstat(path)).isDirectory()) return;
    await chmod(path, 0o700);
    for (const entry of await readdir(path, { withFileTypes: true }))
      if (entry.isDirectory()) await makeWritable(join(path, entry.name));
  } catch (error) {
    // The first attempt may still be removing other folders.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}
