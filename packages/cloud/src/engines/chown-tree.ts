import { constants } from 'node:fs';
import { lstat, open, readdir } from 'node:fs/promises';
import { DirectoryHandle, lstatIfExists } from '../support/directory-handle.ts';
import type { FileOwner } from '../support/file-owner.ts';

const OPEN_FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
/** Deeper folders keep their owner. */
const MAX_DEPTH = 200;

/**
 * Gives a folder and all it holds to a user, unless the folder is the user's already. The account's processes
 * may run meanwhile: every step goes through an open folder, links are not followed, and a file with several
 * names keeps its owner, since one of them may be elsewhere.
 */
export async function chownTree(path: string, user: FileOwner): Promise<void> {
  if ((await lstat(path)).uid === user.uid) return;
  const folder = await DirectoryHandle.open(path);
  try {
    await chownContent(folder, user, 0);
    // Last, so that an interrupted run is repeated.
    await folder.setOwner(user);
    await folder.setMode(0o700);
  } finally {
    await folder.close();
  }
}

async function chownContent(folder: DirectoryHandle, user: FileOwner, depth: number): Promise<void> {
  for (const name of await readdir(folder.pathOf())) {
    const found = await lstatIfExists(folder.pathOf(name));
    if (found === undefined) continue;
    if (found.isFile()) await chownFile(folder.pathOf(name), user);
    if (!found.isDirectory()) continue;
    if (depth === MAX_DEPTH) continue;
    const child = await folder.openChild(name).catch(() => undefined);
    if (child === undefined) continue;
    try {
      await chownContent(child, user, depth + 1);
      await child.setOwner(user);
    } finally {
      await child.close();
    }
  }
}

async function chownFile(path: string, { uid, gid }: FileOwner): Promise<void> {
  const file = await open(path, OPEN_FILE).catch(() => undefined);
  if (file === undefined) return;
  try {
    const found = await file.stat();
    if (found.isFile() && found.nlink === 1) await file.chown(uid, gid);
  } finally {
    await file.close();
  }
}
