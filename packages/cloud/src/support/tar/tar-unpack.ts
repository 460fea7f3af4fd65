import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { link, lstat, mkdir, open, rename, rm, symlink } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { DirectoryHandle } from '../directory-handle.ts';
import type { FileOwner } from '../file-owner.ts';
import { temporaryName } from '../temporary-name.ts';
import { checkOwner } from './tar-owner.ts';
import { readTar, TarError } from './tar-read.ts';
import type { TarEntry } from './tar-read.ts';

const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

export interface UnpackOptions {
  /** The name of an entry below the folder; undefined skips it. */
  rename?(name: string): string | undefined;
  /** Where an entry is written, if it is not below the folder. No link is followed up to `root`. */
  locate?(names: string[]): { root: string; names: string[] };
  /** Whom new files and folders belong to. Default: the user of this process. */
  owner?: FileOwner | undefined;
  onBytes?(count: number): void;
  onFile?(): void;
}

/**
 * Writes the entries of a tar archive below a folder. Names that lead out of it are refused, and so are names
 * that lead through a symbolic link, even one that is created meanwhile.
 */
export async function unpackTar(
  folder: string,
  source: AsyncIterable<Uint8Array>,
  options: UnpackOptions = {},
): Promise<void> {
  const { rename: newName = (name) => name, onFile } = options;
  await mkdir(folder, { recursive: true });
  const target = new UnpackTarget(folder, options);
  try {
    for await (const entry of readTar(source)) {
      const renamed = newName(entry.name);
      if (renamed === undefined) continue;
      await target.write(entry, safeNames(renamed), () => safeNames(newName(entry.target) ?? entry.target));
      if (entry.type === 'file') onFile?.();
    }
  } finally {
    await target.close();
  }
}

function safeNames(name: string): string[] {
  const names = name.split('/').filter((part) => part !== '' && part !== '.');
  if (names.includes('..') || name.includes('\0'))
    throw new TarError(
      `the archive has a name that leads out of the folder: ${JSON.stringify(name.slice(0, 80))}`,
    );
  return names;
}

class UnpackTarget {
  readonly #folder: string;
  readonly #options: UnpackOptions;
  /** The folder of the last entry: the next one is often beside it. */
  #last: { key: string; folder: DirectoryHandle } | undefined;

  constructor(folder: string, options: UnpackOptions) {
    this.#folder = folder;
    this.#options = options;
  }

  async write(entry: TarEntry, names: string[], linkTarget: () => string[]): Promise<void> {
    if (entry.type === 'other') return;
    if (entry.type === 'folder') {
      const folder = await this.#open(names);
      return folder.setMode(entry.mode | 0o700);
    }
    const name = names.at(-1);
    if (name === undefined) throw new TarError('the archive has a file without a name');
    const folder = await this.#open(names.slice(0, -1));
    if (entry.type === 'file') return this.#writeFile(folder, name, entry);
    await removeExisting(folder.pathOf(name));
    if (entry.type === 'hard-link') return this.#writeHardLink(folder, name, linkTarget());
    await symlink(entry.target, folder.pathOf(name));
  }

  async close(): Promise<void> {
    await this.#last?.folder.close();
    this.#last = undefined;
  }

  async #writeFile(folder: DirectoryHandle, name: string, entry: TarEntry): Promise<void> {
    const { owner, onBytes } = this.#options;
    // Under a temporary name until it is complete: nobody sees half a file.
    const unfinished = folder.pathOf(temporaryName(name, randomUUID()));
    const file = await open(unfinished, NEW_FILE, entry.mode | 0o600);
    try {
      for await (const piece of entry.content) {
        onBytes?.(piece.length);
        await writeAll(file, piece);
      }
      // The owner first: a change of the owner clears bits of the mode.
      if (owner !== undefined) await file.chown(owner.uid, owner.gid);
      await file.chmod(entry.mode);
      await file.utimes(new Date(), new Date(entry.modifiedAt));
      await rename(unfinished, folder.pathOf(name));
    } catch (error) {
      await rm(unfinished, { force: true });
      throw error;
    } finally {
      await file.close();
    }
  }

  /** The archive's own folder is left open meanwhile. */
  async #writeHardLink(folder: DirectoryHandle, name: string, target: string[]): Promise<void> {
    const { root, names } = this.#locate(target);
    const from = await this.#walk(root, names.slice(0, -1));
    try {
      const path = from.pathOf(names.at(-1));
      const found = await lstat(path);
      if (!found.isFile()) throw new TarError('the archive has a hard link to something that is not a file');
      checkOwner(target.join('/'), found.uid, this.#options.owner?.uid);
      await link(path, folder.pathOf(name));
    } finally {
      await from.close();
    }
  }

  async #open(wanted: string[]): Promise<DirectoryHandle> {
    const { root, names } = this.#locate(wanted);
    const key = [root, ...names].join('/');
    if (this.#last?.key === key) return this.#last.folder;
    await this.close();
    const folder = await this.#walk(root, names);
    this.#last = { key, folder };
    return folder;
  }

  #locate(names: string[]): { root: string; names: string[] } {
    return this.#options.locate?.(names) ?? { root: this.#folder, names };
  }

  /** Opens a folder, and creates what is missing of it. */
  async #walk(root: string, names: readonly string[]): Promise<DirectoryHandle> {
    let folder = await DirectoryHandle.open(root);
    for (const name of names) {
      try {
        const next = await this.#openOrCreate(folder, name);
        await folder.close();
        folder = next;
      } catch (error) {
        await folder.close();
        if (!['ELOOP', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
        throw new TarError(
          `${JSON.stringify(name.slice(0, 80))} is a link or a file; copy to the folder itself`,
        );
      }
    }
    return folder;
  }

  async #openOrCreate(folder: DirectoryHandle, name: string): Promise<DirectoryHandle> {
    let created = false;
    const opened = await folder.openChild(name, async (path) => {
      await mkdir(path);
      created = true;
    });
    const { owner } = this.#options;
    if (created && owner !== undefined) await opened.setOwner(owner);
    return opened;
  }
}

/** Removes an existing file or link, so that a link is replaced and not followed. */
async function removeExisting(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (found !== undefined && !found.isDirectory()) await rm(path);
}

async function writeAll(file: FileHandle, piece: Uint8Array): Promise<void> {
  for (let at = 0; at < piece.length; ) at += (await file.write(piece, at)).bytesWritten;
}
