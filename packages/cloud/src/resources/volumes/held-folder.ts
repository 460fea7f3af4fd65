import { constants } from 'node:fs';
import type { BigIntStats } from 'node:fs';
import { lstat, open, realpath } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { isAbsolute, join, relative } from 'node:path';

/** Linux lets a folder that is held open be named by its number, and so be used whatever becomes of its path. */
const NAMES_HELD_FOLDERS = process.platform === 'linux';
const FOLDER_ITSELF = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/**
 * A folder that is held open. What is done through it is done in it: whoever puts a link in place
 * of a folder on the way, between the look and the deed, leads nobody astray. (Elsewhere than on
 * Linux the look comes right before the deed, and that is all.)
 */
export class HeldFolder {
  readonly #handle: FileHandle;
  readonly #path: string;

  private constructor(handle: FileHandle, path: string) {
    this.#handle = handle;
    this.#path = NAMES_HELD_FOLDERS ? `/proc/self/fd/${handle.fd}` : path;
  }

  static async open(path: string): Promise<HeldFolder> {
    return new HeldFolder(await open(path, constants.O_RDONLY | constants.O_DIRECTORY), path);
  }

  /** The folder of this name in it; a link is none. Where it is not there, `make` may make it. */
  async child(name: string, make?: (path: string) => Promise<void>): Promise<HeldFolder> {
    const path = this.at(name);
    try {
      return new HeldFolder(await open(path, FOLDER_ITSELF), path);
    } catch (error) {
      if (make === undefined || (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
    await make(path);
    return new HeldFolder(await open(path, FOLDER_ITSELF), path);
  }

  /** The path of a name in it, for as long as it is held. */
  at(name = '.'): string {
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
export interface Place {
  folder: HeldFolder;
  name: string;
  /** The names that lead to the folder, with no link among them. */
  way: readonly string[];
}

/** Makes a folder on the way that is not there, at this path, for as long as the one that it is in is held. The names lead to it, with no link among them. */
export type Make = (path: string, names: readonly string[]) => Promise<void>;

/**
 * Goes down to the folder that holds the last of the names and calls `use` there. A link on the
 * way is followed where it leads to a place inside the root. Undefined where there is no such folder
 * and none is made.
 */
export async function descend<T>(
  root: string,
  names: readonly string[],
  use: (place: Place) => Promise<T>,
  make?: Make,
): Promise<T | undefined> {
  const plain = await walk(root, names, use, make);
  if (plain !== LINK) return plain;
  const way = names.slice(0, -1);
  const inside = await (make === undefined ? followed(root, way) : followedAsFar(root, way));
  if (inside === undefined) return undefined;
  const real = await walk(root, [...inside, names.at(-1) ?? '.'], use, make);
  return real === LINK ? undefined : real;
}

const LINK = Symbol('a link, or a file, stands on the way');

async function walk<T>(
  root: string,
  names: readonly string[],
  use: (place: Place) => Promise<T>,
  make: Make | undefined,
): Promise<T | undefined | typeof LINK> {
  const way = names.slice(0, -1);
  let folder: HeldFolder | undefined;
  try {
    folder = await HeldFolder.open(root);
    for (const [index, name] of way.entries()) {
      const next: HeldFolder = await folder.child(
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
    if (code === 'ENOTDIR' || code === 'ELOOP') return LINK;
    throw error;
  }
  try {
    return await use({ folder, name: names.at(-1) ?? '.', way });
  } finally {
    await folder.close();
  }
}

/** The names that lead from the root to where these lead with every link followed; undefined where that is nowhere, or outside. */
export async function followed(root: string, names: readonly string[]): Promise<string[] | undefined> {
  try {
    const [from, to] = await Promise.all([realpath(root), realpath(join(root, ...names))]);
    const way = relative(from, to);
    if (way === '') return [];
    return way === '..' || way.startsWith('../') || isAbsolute(way) ? undefined : way.split('/');
  } catch (error) {
    if (isAbsence(error)) return undefined;
    throw error;
  }
}

/** The same, where the last of the names may lead to what is yet to be made. They are not followed, so whoever goes there stops at a link among them. */
async function followedAsFar(root: string, names: readonly string[]): Promise<string[] | undefined> {
  for (let length = names.length; length > 0; length -= 1) {
    const inside = await followed(root, names.slice(0, length));
    if (inside !== undefined) return [...inside, ...names.slice(length)];
  }
  return undefined;
}

/** There is nothing there, or nothing that could be there. */
export function isAbsence(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  return code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP' || code === 'ENAMETOOLONG';
}

export async function lstatIfThere(path: string): Promise<BigIntStats | undefined> {
  try {
    return await lstat(path, { bigint: true });
  } catch (error) {
    if (isAbsence(error)) return undefined;
    throw error;
  }
}
