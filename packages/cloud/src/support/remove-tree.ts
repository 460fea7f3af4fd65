import { chmod, lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isPermissionError } from './permission-error.ts';

/**
 * Removes a folder with all that is in it; nothing happens where nothing is. Some programs leave
 * folders that their own user may not write to, as caches of modules are: those are made writable
 * first. Rejects where something in it is not this user's to remove.
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

/** Never goes through links: what they lead to is somebody else's. */
async function makeWritable(path: string): Promise<void> {
  try {
    if (!(await lstat(path)).isDirectory()) return;
    await chmod(path, 0o700);
    for (const entry of await readdir(path, { withFileTypes: true }))
      if (entry.isDirectory()) await makeWritable(join(path, entry.name));
  } catch (error) {
    // The first attempt may still be on its way through other folders.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}
