import { chmod, lstat, readdir, rename, rm, rmdir, unlink } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { DirectoryHandle, isMissingPathError } from './directory-handle.ts';
import { isPermissionError } from './permission-error.ts';

/** Below this depth folders are moved up: each folder on the way down is held open. */
const MAX_DEPTH = 64;
/** Another process may still write into a folder. */
const MAX_ATTEMPTS = 5;

/**
 * Removes a folder with its content, if it exists. Some programs leave read-only folders, such as module
 * caches: those are made writable first. Rejects if something belongs to another user. The owner of the
 * content may be another account, which may replace folders with links meanwhile: nothing outside is removed.
 */
export async function removeTree(path: string): Promise<void> {
  if (process.platform !== 'linux') return removeByPath(path);
  let parent: DirectoryHandle;
  try {
    parent = await DirectoryHandle.open(dirname(resolve(path)));
  } catch (error) {
    if (isMissingPathError(error)) return;
    throw error;
  }
  try {
    const removal = { top: parent, moved: 0 };
    await removeEntry(removal, parent, Buffer.from(basename(path)), 0);
  } finally {
    await parent.close();
  }
}

interface Removal {
  /** The folder that folders from far below are moved to. */
  top: DirectoryHandle;
  moved: number;
}

async function removeEntry(
  removal: Removal,
  parent: DirectoryHandle,
  name: Buffer,
  depth: number,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const path = pathIn(parent, name);
    try {
      if (!(await lstat(path)).isDirectory()) await unlink(path);
      else if (depth >= MAX_DEPTH) await moveUp(removal, path);
      else {
        await emptyFolder(removal, parent, name, depth);
        await rmdir(path);
      }
      return;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') return;
      if (attempt === MAX_ATTEMPTS) throw error;
      if (isPermissionError(error) && depth > 0) await parent.setMode(0o700);
      // Replaced or refilled meanwhile.
      else if (!['ENOTEMPTY', 'EEXIST', 'ENOTDIR', 'EISDIR', 'ELOOP'].includes(code ?? '')) throw error;
    }
  }
}

async function emptyFolder(
  removal: Removal,
  parent: DirectoryHandle,
  name: Buffer,
  depth: number,
): Promise<void> {
  const folder = await openFolder(parent, name);
  try {
    const inner = depth === 0 ? { top: folder, moved: 0 } : removal;
    for (let before = -1; before !== inner.moved; ) {
      before = inner.moved;
      const names = await readNames(folder);
      for (const child of names) await removeEntry(inner, folder, child, depth + 1);
      // Only the topmost folder gets new entries meanwhile.
      if (depth > 0) break;
    }
  } finally {
    await folder.close();
  }
}

/** A folder that its owner may not read is made readable. Root never needs that. */
async function openFolder(parent: DirectoryHandle, name: Buffer): Promise<DirectoryHandle> {
  try {
    return await parent.openChild(name);
  } catch (error) {
    if (!isPermissionError(error) || process.geteuid?.() === 0) throw error;
    await chmod(pathIn(parent, name), 0o700);
    return parent.openChild(name);
  }
}

async function readNames(folder: DirectoryHandle): Promise<Buffer[]> {
  try {
    return await readdir(folder.pathOf(), 'buffer');
  } catch (error) {
    if (!isPermissionError(error)) throw error;
    await folder.setMode(0o700);
    return readdir(folder.pathOf(), 'buffer');
  }
}

async function moveUp(removal: Removal, path: Buffer): Promise<void> {
  removal.moved += 1;
  await rename(path, removal.top.pathOf(`.berth-removed-${process.pid}-${removal.moved}`));
}

function pathIn(folder: DirectoryHandle, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${folder.pathOf()}/`), name]);
}

async function removeByPath(path: string): Promise<void> {
  const remove = (): Promise<void> => rm(path, { recursive: true, force: true, maxRetries: 3 });
  try {
    await remove();
  } catch (error) {
    if (!isPermissionError(error)) throw error;
    await makeWritable(path);
    await remove();
  }
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
