import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { chmod, link, lstat, mkdir, rename, rm, symlink, utimes } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { temporaryName } from '../temporary-name.ts';
import { readTar, TarError } from './tar-read.ts';
import type { TarEntry } from './tar-read.ts';

export interface UnpackOptions {
  /** The name of an entry below the folder; undefined skips it. */
  rename?(name: string): string | undefined;
  onBytes?(count: number): void;
  onFile?(): void;
}

/**
 * Writes the entries of a tar archive below a folder. Names that lead out of it are refused, and so are names
 * that lead through a link of the same archive.
 */
export async function unpackTar(
  folder: string,
  source: AsyncIterable<Uint8Array>,
  { rename: newName = (name) => name, onBytes, onFile }: UnpackOptions = {},
): Promise<void> {
  const links = new Set<string>();
  const safeName = (name: string): string => {
    const names = name.split('/').filter((part) => part !== '' && part !== '.');
    if (names.includes('..') || name.includes('\0'))
      throw new TarError(
        `the archive has a name that leads out of the folder: ${JSON.stringify(name.slice(0, 80))}`,
      );
    for (let depth = 1; depth < names.length; depth += 1)
      if (links.has(names.slice(0, depth).join('/')))
        throw new TarError(
          `the archive has a name that leads through one of its links: ${JSON.stringify(name.slice(0, 80))}`,
        );
    return names.join('/');
  };
  for await (const entry of readTar(source)) {
    const renamed = newName(entry.name);
    if (renamed === undefined) continue;
    const name = safeName(renamed);
    const path = join(folder, name);
    await write(entry, path, () => join(folder, safeName(newName(entry.target) ?? entry.target)), onBytes);
    if (entry.type === 'link') links.add(name);
    else links.delete(name);
    if (entry.type === 'file') onFile?.();
  }
}

async function write(
  entry: TarEntry,
  path: string,
  hardLinkTarget: () => string,
  onBytes: ((count: number) => void) | undefined,
): Promise<void> {
  if (entry.type === 'other') return;
  if (entry.type === 'folder') {
    await mkdir(path, { recursive: true });
    await chmod(path, entry.mode | 0o700);
    return;
  }
  await mkdir(dirname(path), { recursive: true });
  if (entry.type === 'link' || entry.type === 'hard-link') {
    await removeExisting(path);
    return entry.type === 'link' ? symlink(entry.target, path) : link(hardLinkTarget(), path);
  }
  // Under a temporary name until it is complete: nobody sees half a file.
  const unfinished = join(dirname(path), temporaryName(basename(path), randomUUID()));
  try {
    await pipeline(
      countBytes(entry.content, onBytes),
      createWriteStream(unfinished, { flags: 'wx', mode: entry.mode | 0o600 }),
    );
    await chmod(unfinished, entry.mode);
    await utimes(unfinished, new Date(), new Date(entry.modifiedAt));
    await rename(unfinished, path);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  }
}

/** Removes an existing file or link, so that a link is replaced and not followed. */
async function removeExisting(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (found !== undefined && !found.isDirectory()) await rm(path);
}

async function* countBytes(
  content: AsyncIterable<Uint8Array>,
  onBytes: ((count: number) => void) | undefined,
): AsyncGenerator<Uint8Array> {
  for await (const piece of content) {
    onBytes?.(piece.length);
    yield piece;
  }
}
