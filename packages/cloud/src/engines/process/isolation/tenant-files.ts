import { chmod, chown, lstat, mkdir, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { FileOwner } from '../../../support/file-owner.ts';

/** A folder that only this user may enter, created if it is missing. */
export async function createOwnedFolder(path: string, { uid, gid }: FileOwner): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  await chown(path, uid, gid);
}

/** Lets users pass through the folders between the data folder and a path, without listing them. */
export async function makePassable(data: string, path: string): Promise<void> {
  for (let folder = dirname(path); folder.startsWith(`${data}/`); folder = dirname(folder))
    await chmod(folder, 0o711);
}

/**
 * Lets a user read a folder of Berth, such as an image, and nobody else. No account can change what is in it.
 */
export async function grantRead(path: string, { gid }: FileOwner): Promise<void> {
  const found = await lstat(path);
  if (found.isSymbolicLink() || (found.gid === gid && (found.mode & 0o050) === 0o050)) return;
  if (found.isDirectory())
    for (const name of await readdir(path)) await grantRead(join(path, name), { uid: 0, gid });
  await chown(path, found.uid, gid);
  await chmod(path, (found.mode & 0o700) | ((found.mode & 0o500) >> 3));
}
