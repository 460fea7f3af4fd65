import { constants } from 'node:fs';
import { chmod, copyFile, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { BackupTarget } from './backup-target.ts';
import { backupTime } from './backup-target.ts';

/** A folder, on another disk if it shall survive the loss of this one. */
export function folderTarget(folder: string): BackupTarget {
  return {
    list: async () => {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const names = await readdir(folder);
      // What a server that died left under a temporary name.
      for (const name of names)
        if (backupTime(name.replace(/\.partial$/, '')) !== undefined && name.endsWith('.partial'))
          await rm(join(folder, name), { force: true });
      return names.filter((name) => backupTime(name) !== undefined).sort();
    },
    add: async (name, file) => {
      const unfinished = join(folder, `${name}.partial`);
      try {
        await copyFile(file, unfinished, constants.COPYFILE_FICLONE);
        await chmod(unfinished, 0o600);
        const opened = await open(unfinished, 'r+');
        await opened.sync().finally(() => opened.close());
        await rename(unfinished, join(folder, name));
      } catch (error) {
        await rm(unfinished, { force: true });
        throw error;
      }
    },
    remove: (name) => rm(join(folder, name), { force: true }),
  };
}
