import { execFile } from 'node:child_process';
import { readdir, readFile, readlink, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { DiskSize } from './disk-guard.ts';

const BYTES_PER_BLOCK = 512;
const MAX_OUTPUT_BYTES = 1_000_000;
const BTRFS = 0x91_23_68_3e;
const DELETED = ' (deleted)';
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
  const [{ bavail, blocks, bsize, type }, { dev }] = await Promise.all([statfs(folder), stat(folder)]);
  // Each part of a btrfs has a number of its own, and all have the same space.
  const disk = type === BTRFS ? `btrfs of ${blocks} blocks` : `device ${dev}`;
  return { disk, freeBytes: bavail * bsize, totalBytes: blocks * bsize };
}

/** The bytes that these files take; what is missing takes none. */
export async function fileBytes(paths: readonly string[]): Promise<number> {
  const found = await Promise.all(paths.map((path) => stat(path).catch(() => undefined)));
  return found.reduce((sum, file) => sum + (file?.isFile() === true ? file.blocks * BYTES_PER_BLOCK : 0), 0);
}

/** The bytes of files that these processes have open or mapped into memory, and that no folder has any more. */
export async function deletedFileBytes(pids: readonly number[]): Promise<number> {
  const bytes = new Map<string, number>();
  for (const pid of pids)
    for (const path of [...(await deletedOpenFiles(pid)), ...(await deletedMappedFiles(pid))]) {
      const found = await stat(path).catch(() => undefined);
      if (found?.isFile() === true && found.nlink === 0)
        bytes.set(`${found.dev} ${found.ino}`, found.blocks * BYTES_PER_BLOCK);
    }
  return [...bytes.values()].reduce((sum, one) => sum + one, 0);
}

async function deletedOpenFiles(pid: number): Promise<string[]> {
  const folder = `/proc/${pid}/fd`;
  const deleted: string[] = [];
  for (const name of await readdir(folder).catch(() => [])) {
    const target = await readlink(join(folder, name)).catch(() => '');
    if (target.endsWith(DELETED) && !IN_MEMORY.test(target)) deleted.push(join(folder, name));
  }
  return deleted;
}

async function deletedMappedFiles(pid: number): Promise<string[]> {
  const maps = await readFile(`/proc/${pid}/maps`, 'utf8').catch(() => '');
  return maps.split('\n').flatMap((line) => {
    // From-to, rights, offset, device, inode, and then the path.
    const [, range, path = ''] = /^([0-9a-f]+-[0-9a-f]+) (?:\S+ +){4}(.*)$/.exec(line) ?? [];
    const isOne = range !== undefined && path.endsWith(DELETED) && !IN_MEMORY.test(path);
    return isOne ? [`/proc/${pid}/map_files/${range}`] : [];
  });
}
