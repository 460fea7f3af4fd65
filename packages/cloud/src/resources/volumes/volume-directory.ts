import { mkdir, rmdir } from 'node:fs/promises';
import { BerthError } from '../../support/errors.ts';

export interface VolumeDirectoryOptions {
  /** The volume's folder. */
  path: string;
  /** A folder for what is known of its files and for what is under way, on the same file system. */
  statePath: string;
  /** Whether the volume is still there. */
  volumeExists(): Promise<boolean>;
}

/**
 * What the files of a volume stand on: its folder, and the one aside. They are made when something
 * is written, and moved away when the volume is removed. Whoever is writing then must not make them
 * anew, since nobody would remove them: all that is made below them is made in what is there.
 */
export class VolumeDirectory {
  readonly path: string;
  readonly statePath: string;
  readonly #isThere: () => Promise<boolean>;

  constructor({ path, statePath, volumeExists }: VolumeDirectoryOptions) {
    this.path = path;
    this.statePath = statePath;
    this.#isThere = volumeExists;
  }

  /** Does work that writes below the folders. Where the volume goes meanwhile, that is what its failure says. */
  async runWrite<T>(work: () => Promise<T>): Promise<T> {
    try {
      for (const folder of [this.path, this.statePath]) await mkdir(folder, { recursive: true });
      // A removal forgets the volume first: if it is known still, what was just made is moved away with it.
      await this.#checkThere();
      return await work();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') await this.#checkThere();
      throw error;
    }
  }

  async #checkThere(): Promise<void> {
    if (await this.#isThere()) return;
    for (const folder of [this.path, this.statePath]) await removeEmptyDirectory(folder);
    throw new BerthError('not-found', 'this network volume was deleted meanwhile');
  }
}

/** Makes a folder in one that has to be there. Answers whether it was made: it may be there already. */
export async function createDirectory(path: string): Promise<boolean> {
  try {
    await mkdir(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** Removes a folder with nothing in it. Answers whether it was removed: there may be something in it, or it is gone. */
export async function removeEmptyDirectory(path: string): Promise<boolean> {
  try {
    await rmdir(path);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOTEMPTY' || code === 'EEXIST' || code === 'ENOENT') return false;
    throw error;
  }
}
