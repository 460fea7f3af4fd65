import { existsSync } from 'node:fs';
import { readdir, rename } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Ids } from '../../support/ids.ts';
import { removeTree } from '../../support/remove-tree.ts';
import type { InstanceFolder } from './instance-folder.ts';

/** No instance id begins with a dot. */
const REMOVED = '.removed-';

export interface RemovedFoldersOptions {
  /** The folder of all instance folders. */
  path: string;
  ids: Ids;
  /** Called when a folder cannot be deleted; the next sweep tries again. */
  onProblem: (what: string, error: unknown) => void;
}

/**
 * Deletes the folders of removed instances. A folder is renamed first: a folder that cannot be deleted does
 * not keep an instance from ending or from starting again, and the next sweep tries again.
 */
export class RemovedFolders {
  readonly #options: RemovedFoldersOptions;

  constructor(options: RemovedFoldersOptions) {
    this.#options = options;
  }

  /** Returns at once if there is no such folder: every start waits for this. */
  async remove(folder: InstanceFolder): Promise<void> {
    if (!existsSync(folder.path)) return;
    const { path, ids } = this.#options;
    const renamed = join(path, `${REMOVED}${basename(folder.path)}-${ids.resource()}`);
    await rename(folder.path, renamed);
    await this.#delete(renamed);
  }

  /** Deletes renamed folders, also those of an earlier Berth process. */
  async sweep(): Promise<void> {
    const { path } = this.#options;
    for (const name of (await readdir(path)).filter(isRemovedFolder)) await this.#delete(join(path, name));
  }

  async #delete(path: string): Promise<void> {
    try {
      await removeTree(path);
    } catch (error) {
      this.#options.onProblem(`the removed folder ${path} could not be deleted; trying again`, error);
    }
  }
}

export function isRemovedFolder(name: string): boolean {
  return name.startsWith(REMOVED);
}
