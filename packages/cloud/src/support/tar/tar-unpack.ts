import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { chmod, link, lstat, mkdir, rename, rm, symlink, utimes } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { temporaryName } from '../temporary-name.ts';
import { readTar, TarError } from './tar-read.ts';
import type { TarReadEntry } from './tar-read.ts';

export interface UnpackOptions {
  /** Where an entry is to be, below the folder; undefined leaves it out. */
  rename?(name: string): string | undefined;
  onBytes?(count: number): void;
  onFile?(): void;
}

/** Writes the entries of a tar below a folder. A name that leads out of it is refused, and so is one that leads through a link of the same archive. */
export async function unpackTar(
  folder: string,
  source: AsyncIterable<Uint8Array>,
  { rename: renamed = (name) => name, onBytes, onFile }: UnpackOptions = {},
): Promise<void> {
  const links = new Set<string>();
  const place = (name: string): string => {
    const names = name.split('/').filter((part) => part !== '' && part !== '.');
    if (names.includes('..') || name.includes('\0'))
      throw new TarError(`the archive has a name that leads elsewhere: ${JSON.stringify(name.slice(0, 80))}`);
    for (let depth = 1; depth < names.length; depth += 1)
      if (links.has(names.slice(0, depth).join('/')))
        throw new TarError(
          `the archive has a name that leads through a link of its own: ${JSON.stringify(name.slice(0, 80))}`,
        );
    return names.join('/');
  };
  for await (const entry of readTar(source)) {
    const wanted = renamed(entry.name);
    if (wanted === undefined) continue;
    const name = place(wanted);
    const path = join(folder, name);
    await write(entry, path, () => join(folder, place(renamed(entry.target) ?? entry.target)), onBytes);
    if (entry.type === 'link') links.add(name);
    else links.delete(name);
    if (entry.type === 'file') onFile?.();
  }
}

async function write(
  entry: TarReadEntry,
  path: string,
  linked: () => string,
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
    await clear(path);
    return entry.type === 'link' ? symlink(entry.target, path) : link(linked(), path);
  }
  // Under another name until it is whole: others may look for it.
  const unfinished = join(dirname(path), temporaryName(basename(path), randomUUID()));
  try {
    await pipeline(
      counted(entry.content, onBytes),
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

/** What is there goes: it is a link's place that is written to, not what it leads to. */
async function clear(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (found !== undefined && !found.isDirectory()) await rm(path);
}

async function* counted(
  content: AsyncIterable<Uint8Array>,
  onBytes: ((count: number) => void) | undefined,
): AsyncGenerator<Uint8Array> {
  for await (const piece of content) {
    onBytes?.(piece.length);
    yield piece;
  }
}
