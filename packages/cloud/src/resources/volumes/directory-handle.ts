import { constants } from 'node:fs';
import type { BigIntStats } from 'node:fs';
import { lstat, open, realpath } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { isAbsolute, join, relative } from 'node:path';

/** Linux lets a folder that is held open be named by its number, and so be used whatever becomes of its path. */
const HAS_PROC_FD = process.platform === 'linux';
const OPEN_DIRECTORY_NOFOLLOW = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/**
 * A folder that is held open. What is done through it is done in it: whoever puts a link in place
 * of a folder on the way, between the look and the deed, leads nobody astray. (Elsewhere than on
 * Linux the look comes right before the deed, and that is all.)
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

  /** The folder of this name in it; a link is none. Where it is not there, `make` may make it. */
  async openChild(name: string, make?: (path: string) => Promise<void>): Promise<DirectoryHandle> {
    const path = this.pathOf(name);
    try {
      return new DirectoryHandle(await open(path, OPEN_DIRECTORY_NOFOLLOW), path);
    } catch (error) {
      if (make === undefined || (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
    await make(path);
    return new DirectoryHandle(await open(path, OPEN_DIRECTORY_NOFOLLOW), path);
  }

  /** The path of a name in it, for as long as it is held. */
  pathOf(name = '.'): string {
    return join(this.#path, name);
  }

  /** What was put into it, taken from it or renamed in it is on disk. */
  async sync(): Promise<void> {
    await this.#handle.sync();
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }
}

/** Where something is: a folder that is held, and a name in it. */
export interface EntryLocation {
  directory: DirectoryHandle;
  name: string;
  /** The names that lead to the folder, with no link among them. */
  parentNames: readonly string[];
}

/** Makes a folder on the way that is not there, at this path, for as long as the one that it is in is held. The names lead to it, with no link among them. */
export type CreateMissingDirectory = (path: string, names: readonly string[]) => Promise<void>;

/**
 * Goes down to the folder that holds the last of the names and calls `use` there. A link on the
 * way is followed where it leads to a place inside the root. Undefined where there is no such folder
 * and none is made.
 */
export async function withParentDirectory<T>(
  root: string,
  names: readonly string[],
  use: (place: EntryLocation) => Promise<T>,
  make?: CreateMissingDirectory,
): Promise<T | undefined> {
  const plain = await walkWithoutLinks(root, names, use, make);
  if (plain !== NOT_A_DIRECTORY) return plain;
  const way = names.slice(0, -1);
  const inside = await (make === undefined ? resolveInside(root, way) : resolveExistingPrefix(root, way));
  if (inside === undefined) return undefined;
  const real = await walkWithoutLinks(root, [...inside, names.at(-1) ?? '.'], use, make);
  return real === NOT_A_DIRECTORY ? undefined : real;
}

const NOT_A_DIRECTORY = Symbol('a link, or a file, stands on the way');

async function walkWithoutLinks<T>(
  root: string,
  names: readonly string[],
  use: (place: EntryLocation) => Promise<T>,
  make: CreateMissingDirectory | undefined,
): Promise<T | undefined | typeof NOT_A_DIRECTORY> {
  const way = names.slice(0, -1);
  let folder: DirectoryHandle | undefined;
  try {
    folder = await DirectoryHandle.open(root);
    for (const [index, name] of way.entries()) {
      const next: DirectoryHandle = await folder.openChild(
        name,
        make && ((path) => make(path, way.slice(0, index + 1))),
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
    return await use({ directory: folder, name: names.at(-1) ?? '.', parentNames: way });
  } finally {
    await folder.close();
  }
}

/** The names that lead from the root to where these lead with every link followed; undefined where that is nowhere, or outside. */
export async function resolveInside(root: string, names: readonly string[]): Promise<string[] | undefined> {
  try {
    const [from, to] = await Promise.all([realpath(root), realpath(join(root, ...names))]);
    const way = relative(from, to);
    if (way === '') return [];
    return way === '..' || way.startsWith('../') || isAbsolute(way) ? undefined : way.split('/');
  } catch (error) {
    if (isMissingPathError(error)) return undefined;
    throw error;
  }
}

/** The same, where the last of the names may lead to what is yet to be made. They are not followed, so whoever goes there stops at a link among them. */
async function resolveExistingPrefix(root: string, names: readonly string[]): Promise<string[] | undefined> {
  for (let length = names.length; length > 0; length -= 1) {
    const inside = await resolveInside(root, names.slice(0, length));
    if (inside !== undefined) return [...inside, ...names.slice(length)];
  }
  return undefined;
}

/** There is nothing there, or nothing that could be there. */
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
