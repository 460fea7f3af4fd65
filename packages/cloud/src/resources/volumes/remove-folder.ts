import { lstatIfExists, withParentDirectory } from '../../support/directory-handle.ts';
import { removeTree } from '../../support/remove-tree.ts';

/** Deletes a folder with all that is in it; false where there is none. Links are deleted and not followed. */
export async function removeFolder(volume: string, names: readonly string[]): Promise<boolean> {
  const removed = await withParentDirectory(volume, names, async ({ directory, name }) => {
    if ((await lstatIfExists(directory.pathOf(name)))?.isDirectory() !== true) return false;
    await removeTree(directory.pathOf(name));
    await directory.sync();
    return true;
  });
  return removed === true;
}
