import { existsSync } from 'node:fs';
import { readdir, rename } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Ids } from '../../support/ids.ts';
import { removeTree } from '../../support/remove-tree.ts';
import type { InstanceFolder } from './instance-folder.ts';

/** No id of an instance begins with a dot. */
const REMOVED = '.removed-';

export interface RemovedFoldersOptions {
  /** Where instances have their folders. */
  path: string;
  ids: Ids;
  /** Told of what could not be cleared away. */
  onProblem: (what: string, error: unknown) => void;
}

/**
 * Clears away the folders of instances that are gone. A folder is out of the way before that
 * begins: what cannot be cleared away keeps no instance from ending or from starting anew, and
 * is tried again with the next sweep.
 */
export class RemovedFolders {
  readonly #parts: RemovedFoldersOptions;

  constructor(parts: RemovedFoldersOptions) {
    this.#parts = parts;
  }

  /** At once where there is none: every start waits for this. */
  async remove(folder: InstanceFolder): Promise<void> {
    if (!existsSync(folder.path)) return;
    const { path, ids } = this.#parts;
    const aside = join(path, `${REMOVED}${basename(folder.path)}-${ids.resource()}`);
    await rename(folder.path, aside);
    await this.#clear(aside);
  }

  /** With what an earlier Berth left. */
  async sweep(): Promise<void> {
    const { path } = this.#parts;
    for (const name of (await readdir(path)).filter(isRemovedFolder)) await this.#clear(join(path, name));
  }

  async #clear(path: string): Promise<void> {
    try {
      await removeTree(path);
    } catch (error) {
      this.#parts.onProblem(
        `what an instance left at ${path} could not be cleared away; trying again`,
        error,
      );
    }
  }
}

export function isRemovedFolder(name: string): boolean {
  return name.startsWith(REMOVED);
}
