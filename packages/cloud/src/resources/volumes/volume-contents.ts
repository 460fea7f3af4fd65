import { mkdir, readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { KeyedMutex } from '../../support/keyed-mutex.ts';
import type { NetworkVolume } from '../../domain/records.ts';
import type { FileOwner } from '../../support/file-owner.ts';
import { removeTree } from '../../support/remove-tree.ts';
import type { ResourceContext } from '../resource-context.ts';
import { volumeStatePath, volumeDirectoryPath } from './volume-paths.ts';
import { VolumeDirectory } from './volume-directory.ts';
import { isMissingPathError, lstatIfExists, withParentDirectory } from '../../support/directory-handle.ts';
import { VolumeObjects } from './volume-objects.ts';
import { MultipartUploads } from './multipart-uploads.ts';
import { VolumeUsageMeter } from './volume-usage.ts';
import type { VolumeUsage } from './volume-usage.ts';

const BYTES_PER_GB = 1024 ** 3;
/** The directory for the data of deleted volumes. Ids contain no dot. */
const REMOVED_DIRECTORY = '.removed';

/** Whom the files of a volume belong to; undefined for the user that runs Berth. */
export type FileOwnerOf = (
  volume: Pick<NetworkVolume, 'accountId' | 'dataCenterId'>,
) => Promise<FileOwner | undefined>;

/** The files of network volumes, on a local disk or one that several servers share. */
export class VolumeContents {
  readonly #context: ResourceContext;
  readonly #data: string;
  readonly #onProblem: (error: unknown) => void;
  readonly #locks = new KeyedMutex();
  readonly #usages = new Map<string, VolumeUsageMeter>();

  readonly #fileOwner: FileOwnerOf;

  /** `onProblem` is called when the data of a deleted volume cannot be removed. */
  constructor(
    context: ResourceContext,
    data: string,
    onProblem: (error: unknown) => void = () => undefined,
    fileOwner: FileOwnerOf = () => Promise.resolve(undefined),
  ) {
    this.#context = context;
    this.#data = data;
    this.#onProblem = onProblem;
    this.#fileOwner = fileOwner;
  }

  objects(volume: NetworkVolume): VolumeObjects {
    const { ids, disk } = this.#context;
    return new VolumeObjects({
      checkRoom: () => disk?.checkRoom(),
      directory: this.#directory(volume),
      capacity: volume.size * BYTES_PER_GB,
      usage: this.#usage(volume.id),
      locks: this.#locks,
      ids,
    });
  }

  uploads(volume: NetworkVolume): MultipartUploads {
    const { ids, clock } = this.#context;
    return new MultipartUploads({
      objects: this.objects(volume),
      directory: this.#directory(volume),
      usage: this.#usage(volume.id),
      locks: this.#locks,
      clock,
      ids,
    });
  }

  /** Deletes a folder with all that is in it; false where there is none. Links are deleted and not followed. */
  async removeFolder(volume: NetworkVolume, names: readonly string[]): Promise<boolean> {
    const removed = await withParentDirectory(
      volumeDirectoryPath(this.#data, volume.id),
      names,
      async ({ directory, name }) => {
        if ((await lstatIfExists(directory.pathOf(name)))?.isDirectory() !== true) return false;
        await removeTree(directory.pathOf(name));
        await directory.sync();
        return true;
      },
    );
    this.#usage(volume.id).invalidate();
    return removed === true;
  }

  usage(volume: Pick<NetworkVolume, 'id'>): Promise<VolumeUsage> {
    return this.#usage(volume.id).current();
  }

  /**
   * Called after a volume was deleted. Moves its data away at once; deleting the files can take long and
   * happens in the background.
   */
  async remove(id: string): Promise<void> {
    this.#usages.delete(id);
    const bin = volumeStatePath(this.#data, REMOVED_DIRECTORY);
    await mkdir(bin, { recursive: true });
    for (const [index, folder] of [
      volumeDirectoryPath(this.#data, id),
      volumeStatePath(this.#data, id),
    ].entries()) {
      await rename(folder, join(bin, `${id}-${index}-${this.#context.ids.resource()}`)).catch(
        (error: unknown) => {
          if (!isMissingPathError(error)) throw error;
        },
      );
    }
    void this.deleteRemovedData();
  }

  /**
   * Deletes the data of deleted volumes, including what an earlier run left. A failure does not stop the
   * rest.
   */
  async deleteRemovedData(): Promise<void> {
    const bin = volumeStatePath(this.#data, REMOVED_DIRECTORY);
    for (const name of await this.#namesIn(bin)) await removeTree(join(bin, name)).catch(this.#onProblem);
  }

  async #namesIn(bin: string): Promise<string[]> {
    try {
      return await readdir(bin);
    } catch (error) {
      if (!isMissingPathError(error)) this.#onProblem(error);
      return [];
    }
  }

  #directory(volume: NetworkVolume): VolumeDirectory {
    const { id, accountId } = volume;
    const volumeExists = async (): Promise<boolean> =>
      (await this.#context.store.volumes.find(accountId, id)) !== undefined;
    return new VolumeDirectory({
      path: volumeDirectoryPath(this.#data, id),
      statePath: volumeStatePath(this.#data, id),
      volumeExists,
      fileOwner: () => this.#fileOwner(volume),
    });
  }

  #usage(id: string): VolumeUsageMeter {
    let usage = this.#usages.get(id);
    if (usage === undefined) {
      usage = new VolumeUsageMeter([
        volumeDirectoryPath(this.#data, id),
        `${volumeStatePath(this.#data, id)}/uploads`,
      ]);
      this.#usages.set(id, usage);
    }
    return usage;
  }
}
