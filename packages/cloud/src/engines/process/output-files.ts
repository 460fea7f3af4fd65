import { lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** A file of the output writer, see output-writer.sh. */
export interface OutputFile {
  path: string;
  number: number;
  /** How many lines the instance wrote before this file. */
  linesBefore: number;
}

const NAME = /^(\d+)\.(\d+)$/;

/** The files of an instance's output, oldest first. One that an earlier Berth started has a single file. */
export async function listOutputFiles(folder: string): Promise<OutputFile[]> {
  const found = await lstat(folder).catch(() => undefined);
  if (found?.isFile() === true) return [{ path: folder, number: 1, linesBefore: 0 }];
  // An instance that runs as Berth's own user can put a link there.
  if (found?.isDirectory() !== true) return [];
  const files: OutputFile[] = [];
  for (const name of await namesIn(folder)) {
    const [, number, linesBefore] = NAME.exec(name) ?? [];
    if (number !== undefined)
      files.push({ path: join(folder, name), number: Number(number), linesBefore: Number(linesBefore) });
  }
  return files.sort((one, other) => one.number - other.number);
}

export async function sizeOf({ path }: OutputFile): Promise<number> {
  return (await lstat(path).catch(() => undefined))?.size ?? 0;
}

/** Deletes a file that is read. The writer may have deleted it before. */
export async function deleteOutputFile({ path }: OutputFile): Promise<void> {
  await rm(path, { force: true });
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    // The instance may delete it, or replace it with a link to a file, after it was checked.
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return [];
    throw error;
  }
}
