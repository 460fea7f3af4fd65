import { constants, type Stats } from 'node:fs';
import { chown, copyFile, open, rename, rm } from 'node:fs/promises';
import type { FileOwner } from '../../support/file-owner.ts';
import { syncInTurn } from '../../support/file-syncs.ts';

/** A file of somebody else with several names: one of them may be elsewhere, and the account only linked it. */
export function isForeign(stats: Stats, owner: FileOwner | undefined): boolean {
  return owner !== undefined && stats.isFile() && stats.uid !== owner.uid && stats.nlink > 1;
}

/** The file is still in a folder of Berth. */
export async function giveFile(path: string, owner: FileOwner | undefined): Promise<void> {
  if (owner !== undefined) await chown(path, owner.uid, owner.gid);
}

/** Renames the file. If the volume is on another file system, copies it beside the target first. */
export async function moveFile(from: string, to: string, beside: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error;
    try {
      await copyFile(from, beside, constants.COPYFILE_EXCL);
      const copy = await open(beside, 'r+');
      await syncInTurn(copy).finally(() => copy.close());
      await rename(beside, to);
    } finally {
      await rm(beside, { force: true });
    }
  }
}
