import { execFile } from 'node:child_process';
import { readdir, readlink, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { DiskSize } from './disk-guard.ts';

const BYTES_PER_BLOCK = 512;
const MAX_OUTPUT_BYTES = 1_000_000;
/** Files of memory: they take no space of a disk. */
const IN_MEMORY = /^\/(?:memfd:|SYSV|dev\/shm\/|dev\/zero)/;

/**
 * The bytes that the files below each folder take. Links are not followed, and what disappears meanwhile does
 * not count. A program of its own counts them, with the lowest priority, so that nothing waits for it.
 */
export function folderBytes(folders: readonly string[]): Promise<Map<string, number>> {
  return new Promise((resolve, reject) => {
    execFile(
      'nice',
      ['-n', '19', 'du', '-skx', ...folders],
      { maxBuffer: MAX_OUTPUT_BYTES },
      (error, stdout) => {
        const lines = [...stdout.matchAll(/^(\d+)\t(.+)$/gm)];
        // It also fails when a file disappears, and still prints the sums.
        if (error !== null && lines.length === 0 && error.code !== 1) return reject(error);
        resolve(new Map(lines.map(([, kilobytes, folder]) => [folder ?? '', Number(kilobytes) * 1024])));
      },
    );
  });
}

/** The disk with this folder. */
export async function readDisk(folder: string): Promise<DiskSize> {
  const { bavail, blocks, bsize } = await statfs(folder);
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
}

/** The bytes of files that these processes have open and that no folder has any more. */
export async function deletedFileBytes(pids: readonly number[]): Promise<number> {
  const bytes = new Map<string, number>();
  for (const pid of pids) {
    const folder = `/proc/${pid}/fd`;
    for (const name of await readdir(folder).catch(() => [])) {
      const path = join(folder, name);
      const target = await readlink(path).catch(() => '');
      if (!target.endsWith(' (deleted)') || IN_MEMORY.test(target)) continue;
      const found = await stat(path).catch(() => undefined);
      if (found?.isFile() === true && found.nlink === 0)
        bytes.set(`${found.dev} ${found.ino}`, found.blocks * BYTES_PER_BLOCK);
    }
  }
  return [...bytes.values()].reduce((sum, one) => sum + one, 0);
}
