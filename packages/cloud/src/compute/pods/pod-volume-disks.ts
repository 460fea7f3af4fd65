import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pod } from '../../domain/pods/pod-record.ts';
import type { EngineVolumes } from '../../engines/engine-volumes.ts';
import type { PodStore } from '../../store/pod-store.ts';
import type { Log } from '../../support/log.ts';
import { removeTree } from '../../support/remove-tree.ts';

export interface PodVolumeDisksDeps {
  /** The directory with one directory for each pod, named by the pod's id. */
  path: string;
  store: Pick<PodStore, 'findInAnyAccount'>;
  log: Log;
}

/** The volume disks of pods. Each is kept until its pod is terminated. */
export class PodVolumeDisks {
  readonly #deps: PodVolumeDisksDeps;
  /** Disks of terminated pods that could not be deleted yet. */
  readonly #undeleted = new Set<string>();

  constructor(deps: PodVolumeDisksDeps) {
    this.#deps = deps;
  }

  pathOf(podId: string): string {
    return join(this.#deps.path, podId);
  }

  /**
   * Deletes the disk of a terminated pod. What fails is left to `retryRemovals`, and after a restart to
   * `removeOrphans`.
   */
  async remove(podId: string): Promise<void> {
    try {
      await removeTree(this.pathOf(podId));
      this.#undeleted.delete(podId);
    } catch (error) {
      this.#undeleted.add(podId);
      this.#deps.log.warn(
        { err: error, podId },
        'the volume disk of a terminated pod could not be deleted; trying again',
      );
    }
  }

  async retryRemovals(): Promise<void> {
    for (const podId of [...this.#undeleted]) await this.remove(podId);
  }

  /**
   * Deletes the disks of terminated pods that an earlier server left. A disk without a record is kept: it may
   * belong to another database.
   */
  async removeOrphans(ofEngines: readonly Pick<EngineVolumes, 'list' | 'remove'>[] = []): Promise<void> {
    const { path, store, log } = this.#deps;
    for (const podId of await this.#names()) {
      const pod = await store.findInAnyAccount(podId);
      if (pod === undefined)
        log.warn(
          { folder: join(path, podId) },
          'a volume disk belongs to no known pod; it is kept until you delete it',
        );
      else if (isEnded(pod)) await this.remove(podId);
    }
    for (const volumes of ofEngines)
      for (const id of await volumes.list()) {
        const pod = await store.findInAnyAccount(id);
        if (pod !== undefined && isEnded(pod)) await volumes.remove(id);
      }
  }

  /** The directory is created with the first disk. */
  async #names(): Promise<string[]> {
    try {
      return await readdir(this.#deps.path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw error;
    }
  }
}

function isEnded({ wanted, settled }: Pick<Pod, 'wanted' | 'settled'>): boolean {
  return wanted === 'terminated' && settled;
}
