import { mkdir, readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { KeyedMutex } from '../../support/keyed-mutex.ts';
import type { NetworkVolume } from '../../domain/records.ts';
import type { FileOwner } from '../../support/file-owner.ts';
import { removeTree } from '../../support/remove-tree.ts';
import type { ResourceContext } from '../resource-context.ts';
import { volumeStatePath, volumeDirectoryPath } from './volume-paths.ts';
import { VolumeDirectory } from './volume-directory.ts';
import { isMissingPathError } from '../../support/directory-handle.ts';
import { removeFolder } from './remove-folder.ts';
import type { ObjectStore, UploadStore, VolumeBackend } from './volume-backend.ts';
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

/** Volumes of data centers that keep them by themselves, such as claims of a Kubernetes cluster. */
export interface ExternalVolumes {
  /** Undefined if the volume is a folder that this server sees. */
  backend(volume: NetworkVolume): VolumeBackend | undefined;
  create(volume: NetworkVolume): Promise<void>;
  /** Makes it as large as the record says. */
  grow(volume: NetworkVolume): Promise<void>;
  remove(volume: NetworkVolume): Promise<void>;
  /** Its usage; null if it is not known without starting something and `mayStart` is false. */
  usage(volume: NetworkVolume, mayStart: boolean): Promise<VolumeUsage | null>;
}

/**
 * The files of network volumes: on a local disk, one that several servers share, or behind volume servers.
 */
export class VolumeContents {
  readonly #context: ResourceContext;
  readonly #data: string;
  readonly #onProblem: (error: unknown) => void;
  readonly #locks = new KeyedMutex();
  readonly #usages = new Map<string, VolumeUsageMeter>();

  readonly #fileOwner: FileOwnerOf;
  readonly #external: ExternalVolumes | undefined;

  /** `onProblem` is called when the data of a deleted volume cannot be removed. */
  constructor(
    context: ResourceContext,
    data: string,
    onProblem: (error: unknown) => void = () => undefined,
    fileOwner: FileOwnerOf = () => Promise.resolve(undefined),
    external?: ExternalVolumes,
  ) {
    this.#context = context;
    this.#data = data;
    this.#onProblem = onProblem;
    this.#fileOwner = fileOwner;
    this.#external = external;
  }

  objects(volume: NetworkVolume): ObjectStore {
    return this.#external?.backend(volume)?.objects ?? this.#localObjects(volume);
  }

  #localObjects(volume: NetworkVolume): VolumeObjects {
    const { ids, disk } = this.#context;
    const { accountId } = volume;
    return new VolumeObjects({
      checkRoom: () => disk?.checkRoom(),
      takeShare: (bytes) => this.#context.diskShares?.take(accountId, bytes),
      directory: this.#directory(volume),
      capacity: volume.size * BYTES_PER_GB,
      usage: this.#usage(volume.id),
      locks: this.#locks,
      ids,
    });
  }

  uploads(volume: NetworkVolume): UploadStore {
    const remote = this.#external?.backend(volume)?.uploads;
    if (remote !== undefined) return remote;
    const { ids, clock } = this.#context;
    return new MultipartUploads({
      objects: this.#localObjects(volume),
      directory: this.#directory(volume),
      usage: this.#usage(volume.id),
      locks: this.#locks,
      clock,
      ids,
    });
  }

  /**
   * Deletes a folder with all that is in it; false where there is none. Links are deleted and not followed.
   */
  async removeFolder(volume: NetworkVolume, names: readonly string[]): Promise<boolean> {
    const remote = this.#external?.backend(volume);
    if (remote !== undefined) return remote.removeFolder(names);
    const removed = await removeFolder(volumeDirectoryPath(this.#data, volume.id), names);
    this.#usage(volume.id).invalidate();
    return removed;
  }

  /** `mayStart`: a volume server may be started to measure it. Null if the usage is not known then. */
  async usage(volume: NetworkVolume, mayStart = true): Promise<VolumeUsage | null> {
    if (this.#external?.backend(volume) !== undefined) return this.#external.usage(volume, mayStart);
    return this.#usage(volume.id).current();
  }

  /** Called after a volume was created. One that is a folder is created with its first file. */
  async create(volume: NetworkVolume): Promise<void> {
    await this.#external?.create(volume).catch(this.#onProblem);
  }

  /** Called before a volume grows. Throws if it cannot. */
  async grow(volume: NetworkVolume): Promise<void> {
    await this.#external?.grow(volume);
  }

  /**
   * Called after a volume was deleted. Moves its data away at once; deleting the files can take long and
   * happens in the background.
   */
  async remove(volume: NetworkVolume): Promise<void> {
    const { id } = volume;
    await this.#external?.remove(volume);
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
