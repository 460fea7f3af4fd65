import { constants } from 'node:fs';
import { chmod, chown, mkdir, open, rmdir } from 'node:fs/promises';
import type { FileOwner } from '../../support/file-owner.ts';
import { BerthError } from '../../support/errors.ts';

export interface VolumeDirectoryOptions {
  /** The volume's directory. */
  path: string;
  /** The directory for metadata and unfinished uploads, on the same file system. */
  statePath: string;
  /** Whether the volume still exists. */
  volumeExists(): Promise<boolean>;
  /** Who may use the volume's directory. Default: only its owner. */
  mode?: number;
  /** Whom its files belong to. Default: the user that runs Berth. */
  fileOwner?(): Promise<FileOwner | undefined>;
}

/**
 * The directories of a volume: its data and its state. They are created on the first write and moved away
 * when the volume is deleted. A write that runs at that time must not create them again, since nobody would
 * delete them; so it only creates entries inside existing directories.
 */
export class VolumeDirectory {
  readonly path: string;
  readonly statePath: string;
  readonly #mode: number;
  readonly #volumeExists: () => Promise<boolean>;
  readonly #fileOwner: () => Promise<FileOwner | undefined>;

  constructor({ path, statePath, mode = 0o700, volumeExists, fileOwner }: VolumeDirectoryOptions) {
    this.path = path;
    this.statePath = statePath;
    this.#mode = mode;
    this.#volumeExists = volumeExists;
    this.#fileOwner = fileOwner ?? (() => Promise.resolve(undefined));
  }

  /** Runs a write below these directories. If the volume is deleted meanwhile, throws a not-found error. */
  async runWrite<T>(work: () => Promise<T>): Promise<T> {
    try {
      await this.#create();
      // A deletion removes the record first: if the record still exists, the directories created above are
      // moved away with it.
      await this.#checkVolumeExists();
      return await work();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') await this.#checkVolumeExists();
      throw error;
    }
  }

  /** Whom the files of the volume belong to; undefined for the user that runs Berth. */
  fileOwner(): Promise<FileOwner | undefined> {
    return this.#fileOwner();
  }

  async #create(): Promise<void> {
    const created = await mkdir(this.path, { recursive: true, mode: this.#mode });
    // The umask of the process does not count.
    if (created !== undefined && this.#mode !== 0o700) await chmod(this.path, this.#mode);
    await mkdir(this.statePath, { recursive: true, mode: 0o700 });
    const owner = created === undefined ? undefined : await this.#fileOwner();
    if (owner !== undefined) await chown(this.path, owner.uid, owner.gid);
  }

  async #checkVolumeExists(): Promise<void> {
    if (await this.#volumeExists()) return;
    for (const folder of [this.path, this.statePath]) await removeEmptyDirectory(folder);
    throw new BerthError('not-found', 'this network volume was deleted by another request');
  }
}

/** Creates a directory; the parent must exist. Returns false if it exists already. */
export async function createDirectory(path: string, owner?: FileOwner): Promise<boolean> {
  try {
    await mkdir(path);
    if (owner !== undefined) await giveDirectory(path, owner);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/** An account may have put something else there: only a directory is given away, and no link is followed. */
async function giveDirectory(path: string, { uid, gid }: FileOwner): Promise<void> {
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    await handle.chown(uid, gid);
  } finally {
    await handle.close();
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
