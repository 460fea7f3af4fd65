import { mkdir, rmdir } from 'node:fs/promises';
import { BerthError } from '../../support/errors.ts';

export interface VolumeDirectoryOptions {
  /** The volume's directory. */
  path: string;
  /** The directory for metadata and unfinished uploads, on the same file system. */
  statePath: string;
  /** Whether the volume still exists. */
  volumeExists(): Promise<boolean>;
}

/**
 * The directories of a volume: its data and its state. They are created on the first write and moved away
 * when the volume is deleted. A write that runs at that time must not create them again, since nobody would
 * delete them; so it only creates entries inside existing directories.
 */
export class VolumeDirectory {
  readonly path: string;
  readonly statePath: string;
  readonly #volumeExists: () => Promise<boolean>;

  constructor({ path, statePath, volumeExists }: VolumeDirectoryOptions) {
    this.path = path;
    this.statePath = statePath;
    this.#volumeExists = volumeExists;
  }

  /** Runs a write below these directories. If the volume is deleted meanwhile, throws a not-found error. */
  async runWrite<T>(work: () => Promise<T>): Promise<T> {
    try {
      for (const folder of [this.path, this.statePath]) await mkdir(folder, { recursive: true });
      // A deletion removes the record first: if the record still exists, the directories created above are
      // moved away with it.
      await this.#checkVolumeExists();
      return await work();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') await this.#checkVolumeExists();
      throw error;
    }
  }

  async #checkVolumeExists(): Promise<void> {
    if (await this.#volumeExists()) return;
    for (const folder of [this.path, this.statePath]) await removeEmptyDirectory(folder);
    throw new BerthError('not-found', 'this network volume was deleted by another request');
  }
}

/** Creates a directory; the parent must exist. Returns false if it exists already. */
export async function createDirectory(path: string): Promise<boolean> {
  try {
    await mkdir(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** Removes an empty directory. Returns false if it is not empty or does not exist. */
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
