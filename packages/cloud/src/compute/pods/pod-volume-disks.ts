import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { PodStore } from '../../store/pod-store.ts';
import type { Log } from '../../support/log.ts';
import { removeTree } from '../../support/remove-tree.ts';

export interface PodVolumeDisksDeps {
  /** Where they lie, each in a folder with the name of its pod. */
  path: string;
  store: Pick<PodStore, 'findInAnyAccount'>;
  log: Log;
}

/** The volume disks of pods. Each stays until its pod is terminated. */
export class PodVolumeDisks {
  readonly #deps: PodVolumeDisksDeps;
  /** Those of terminated pods that could not be cleared away yet. */
  readonly #left = new Set<string>();

  constructor(deps: PodVolumeDisksDeps) {
    this.#deps = deps;
  }

  pathOf(podId: string): string {
    return join(this.#deps.path, podId);
  }

  /** Its pod is terminated. What cannot be cleared away now is for `retry`, and for `sweep` after a restart. */
  async remove(podId: string): Promise<void> {
    try {
      await removeTree(this.pathOf(podId));
      this.#left.delete(podId);
    } catch (error) {
      this.#left.add(podId);
      this.#deps.log.warn(
        { err: error, podId },
        'the volume disk of a terminated pod could not be cleared away; trying again',
      );
    }
  }

  async retryRemovals(): Promise<void> {
    for (const podId of [...this.#left]) await this.remove(podId);
  }

  /** Removes what an earlier Berth left. A disk goes only where a record says so: one that nobody knows may be of another database. */
  async removeOrphans(): Promise<void> {
    const { path, store, log } = this.#deps;
    for (const podId of await this.#names()) {
      const pod = await store.findInAnyAccount(podId);
      if (pod === undefined)
        log.warn(
          { folder: join(path, podId) },
          'a volume disk is of no pod that is known here; it stays until somebody removes it',
        );
      else if (pod.wanted === 'terminated' && pod.settled) await this.remove(podId);
    }
  }

  /** The folder is made with the first disk. */
  async #names(): Promise<string[]> {
    try {
      return await readdir(this.#deps.path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw error;
    }
  }
}
