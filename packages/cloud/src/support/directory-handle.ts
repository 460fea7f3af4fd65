import { constants } from 'node:fs';
import type { BigIntStats, Stats } from 'node:fs';
import { lstat, open, realpath } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { isAbsolute, join, relative } from 'node:path';
import type { FileOwner } from './file-owner.ts';
import { syncInTurn } from './file-syncs.ts';

/** On Linux, an open directory can be used through its file descriptor even if its path changes. */
const HAS_PROC_FD = process.platform === 'linux';
const OPEN_DIRECTORY_NOFOLLOW = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/**
 * An open directory. Operations go through its file descriptor, so replacing a directory on the path with a
 * symbolic link between check and use has no effect. On systems other than Linux, the check comes right
 * before the use, and a race remains possible.
 */
export class DirectoryHandle {
  readonly #handle: FileHandle;
  readonly #path: string;

  private constructor(handle: FileHandle, path: string) {
    this.#handle = handle;
    this.#path = HAS_PROC_FD ? `/proc/self/fd/${handle.fd}` : path;
  }

  static async open(path: string): Promise<DirectoryHandle> {
    return new DirectoryHandle(await open(path, constants.O_RDONLY | constants.O_DIRECTORY), path);
  }

  /** Opens a subdirectory; symbolic links are refused. If it does not exist, `make` may create it. */
  async openChild(name: string | Buffer, make?: (path: string) => Promise<void>): Promise<DirectoryHandle> {
    if (typeof name !== 'string') {
      const bytes = Buffer.concat([Buffer.from(`${this.#path}/`), name]);
      return new DirectoryHandle(await open(bytes, OPEN_DIRECTORY_NOFOLLOW), bytes.toString());
    }
    const path = this.pathOf(name);
    try {
      return new DirectoryHandle(await open(path, OPEN_DIRECTORY_NOFOLLOW), path);
    } catch (error) {
      if (make === undefined || (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
    await make(path);
    return new DirectoryHandle(await open(path, OPEN_DIRECTORY_NOFOLLOW), path);
  }

  /** The path of an entry; valid until the handle is closed. */
  pathOf(name = '.'): string {
    return join(this.#path, name);
  }

  async setOwner({ uid, gid }: FileOwner): Promise<void> {
    await this.#handle.chown(uid, gid);
  }

  async setMode(mode: number): Promise<void> {
    await this.#handle.chmod(mode);
  }

  async stat(): Promise<Stats> {
    return this.#handle.stat();
  }

  /** Syncs the directory, so that added, removed and renamed entries are on disk. */
  async sync(): Promise<void> {
    await syncInTurn(this.#handle);
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }
}

/** The location of an entry: the open parent directory and the name in it. */
export interface EntryLocation {
  directory: DirectoryHandle;
  name: string;
  /** The names from the root to the parent directory, without symbolic links. */
  parentNames: readonly string[];
}

/**
 * Creates a missing directory of a path. The path is valid while the parent is open. The names lead from the
 * root to it, without symbolic links.
 */
export type CreateMissingDirectory = (path: string, names: readonly string[]) => Promise<void>;

/**
 * Opens the parent directory of the last name, without following any symbolic link below the root. Undefined
 * if there is no such directory. The caller closes it.
 */
export async function openParentDirectory(
  root: string,
  names: readonly string[],
): Promise<EntryLocation | undefined> {
  const parentNames = names.slice(0, -1);
  let directory: DirectoryHandle | undefined;
  try {
    directory = await DirectoryHandle.open(root);
    for (const name of parentNames) {
      const next: DirectoryHandle = await directory.openChild(name);
      await directory.close();
      directory = next;
    }
  } catch (error) {
    await directory?.close();
    if (isMissingPathError(error)) return undefined;
    throw error;
  }
  return { directory, name: names.at(-1) ?? '.', parentNames };
}

/**
 * Opens the parent directory of the last name and calls `use` with it. Symbolic links on the path are
 * followed only if they stay inside the root. Undefined if the parent does not exist and is not created.
 */
export async function withParentDirectory<T>(
  root: string,
  names: readonly string[],
  use: (location: EntryLocation) => Promise<T>,
  make?: CreateMissingDirectory,
): Promise<T | undefined> {
  const plain = await walkWithoutLinks(root, names, use, make);
  if (plain !== NOT_A_DIRECTORY) return plain;
  const parents = names.slice(0, -1);
  const inside = await (make === undefined
    ? resolveInside(root, parents)
    : resolveExistingPrefix(root, parents));
  if (inside === undefined) return undefined;
  const real = await walkWithoutLinks(root, [...inside, names.at(-1) ?? '.'], use, make);
  return real === NOT_A_DIRECTORY ? undefined : real;
}

const NOT_A_DIRECTORY = Symbol('a link or a file on the path');

async function walkWithoutLinks<T>(
  root: string,
  names: readonly string[],
  use: (location: EntryLocation) => Promise<T>,
  make: CreateMissingDirectory | undefined,
): Promise<T | undefined | typeof NOT_A_DIRECTORY> {
  const parents = names.slice(0, -1);
  let folder: DirectoryHandle | undefined;
  try {
    folder = await DirectoryHandle.open(root);
    for (const [index, name] of parents.entries()) {
      const next: DirectoryHandle = await folder.openChild(
        name,
        make && ((path) => make(path, parents.slice(0, index + 1))),
      );
      await folder.close();
      folder = next;
    }
  } catch (error) {
    await folder?.close();
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' && make === undefined) return undefined;
    if (code === 'ENOTDIR' || code === 'ELOOP') return NOT_A_DIRECTORY;
    throw error;
  }
  try {
    return await use({ directory: folder, name: names.at(-1) ?? '.', parentNames: parents });
  } finally {
    await folder.close();
  }
}

/**
 * Resolves all symbolic links and returns the names from the root; undefined if the path does not exist or
 * leaves the root.
 */
export async function resolveInside(root: string, names: readonly string[]): Promise<string[] | undefined> {
  try {
    const [from, to] = await Promise.all([realpath(root), realpath(join(root, ...names))]);
    const parents = relative(from, to);
    if (parents === '') return [];
    return parents === '..' || parents.startsWith('../') || isAbsolute(parents)
      ? undefined
      : parents.split('/');
  } catch (error) {
    if (isMissingPathError(error)) return undefined;
    throw error;
  }
}

/**
 * Like resolveInside(), but the last names may not exist yet. They are not resolved; opening one that became
 * a link fails.
 */
async function resolveExistingPrefix(root: string, names: readonly string[]): Promise<string[] | undefined> {
  for (let length = names.length; length > 0; length -= 1) {
    const inside = await resolveInside(root, names.slice(0, length));
    if (inside !== undefined) return [...inside, ...names.slice(length)];
  }
  return undefined;
}

/** Whether nothing exists at a path, or nothing can exist there. */
export function isMissingPathError(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  return code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP' || code === 'ENAMETOOLONG';
}

export async function lstatIfExists(path: string): Promise<BigIntStats | undefined> {
  try {
    return await lstat(path, { bigint: true });
  } catch (error) {
    if (isMissingPathError(error)) return undefined;
    throw error;
  }
}
