import { constants } from 'node:fs';
import type { BigIntStats } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import type { KeyedMutex } from '../../support/keyed-mutex.ts';
import type { Ids } from '../../support/ids.ts';
import { BerthError, ruleError } from '../../support/errors.ts';
import { temporaryName } from '../../support/temporary-name.ts';
import { ObjectMetadataStore, derivedEtag, type StoredObject } from './object-metadata.ts';
import type { ObjectMetadata, ObjectHeaders } from './object-metadata.ts';
import { createDirectory, removeEmptyDirectory } from './volume-directory.ts';
import type { VolumeDirectory } from './volume-directory.ts';
import {
  withParentDirectory,
  resolveInside,
  isMissingPathError,
  lstatIfExists,
} from '../../support/directory-handle.ts';
import type { EntryLocation } from '../../support/directory-handle.ts';
import { receiveFile } from './receive-file.ts';
import type { ReceivedFile } from './receive-file.ts';
import { listObjects } from './object-listing.ts';
import type { ObjectListing, ObjectListingQuery } from './object-listing.ts';
import { objectPath } from './object-key.ts';
import { giveFile, isForeign, moveFile } from './volume-file.ts';
import type { VolumeUsageMeter } from './volume-usage.ts';

/** An open object: all reads are from one file, even if another one replaces it. */
export interface OpenObject extends StoredObject {
  /** Reads the bytes from `from` to `to`, both included. The stream must be read to its end or destroyed. */
  read(from: number, to: number): Readable;
  close(): Promise<void>;
}

export interface NewObject {
  bytes: AsyncIterable<Uint8Array>;
  length: number;
  headers: ObjectHeaders;
  /** Called after all bytes were received. */
  checksums?: () => Readonly<Record<string, string>>;
}

/** Throws to refuse the write. Called under the lock of the key, right before the change. */
export type WriteCondition = (present: StoredObject | undefined) => void;

export interface VolumeObjectsDeps {
  directory: VolumeDirectory;
  /** Capacity in bytes. */
  capacity: number;
  /** Throws if the disk has no room for new data. */
  checkRoom?(): void;
  /** Throws if the account has its share of a disk that is nearly full. The result gives the bytes back. */
  takeShare?(bytes: number): (() => void) | undefined;
  usage: VolumeUsageMeter;
  locks: KeyedMutex;
  ids: Ids;
}

/** Attempts to create a directory that another request removes before it is used. */
const MAX_ATTEMPTS = 5;

/** The files of one network volume, as objects under keys. */
export class VolumeObjects {
  readonly #deps: VolumeObjectsDeps;
  readonly #metadata: ObjectMetadataStore;

  constructor(deps: VolumeObjectsDeps) {
    this.#deps = deps;
    // The name on disk since 0.1.0.
    this.#metadata = new ObjectMetadataStore(join(deps.directory.statePath, 'cards'));
  }

  list(query: ObjectListingQuery): Promise<ObjectListing> {
    return listObjects(this.#deps.directory.path, query, (key, file) => this.#describe(key, file));
  }

  async head(key: string): Promise<StoredObject | undefined> {
    const object = await this.open(key);
    await object?.close();
    return object;
  }

  async open(key: string): Promise<OpenObject | undefined> {
    const { names, folder } = objectPath(key);
    const handle = await this.#openHandle(names, folder);
    if (handle === undefined) return undefined;
    try {
      const object = await this.#describe(key, await handle.stat({ bigint: true }));
      return {
        ...object,
        read: (start, end) =>
          handle.createReadStream({ start, end, autoClose: true, highWaterMark: 256 * 1024 }),
        close: () => handle.close(),
      };
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** The object becomes visible only when it is complete and on disk. */
  async put(
    key: string,
    object: NewObject,
    condition: WriteCondition = () => undefined,
  ): Promise<StoredObject> {
    const { names, folder } = objectPath(key);
    if (folder && object.length > 0)
      throw ruleError('a key that ends in a slash is a folder, and has no content');
    return this.#deps.directory.runWrite(() =>
      folder ? this.#putFolder(key, names) : this.#putFile(key, object, condition),
    );
  }

  /**
   * Moves a received file to a key. Must be called within runWrite(). The temporary file is removed in any
   * case.
   */
  async commitFile(
    key: string,
    { path, stats }: ReceivedFile,
    metadata: ObjectMetadata,
    condition: WriteCondition,
  ): Promise<StoredObject> {
    const { names } = objectPath(key);
    try {
      return await this.#deps.locks.runExclusive(this.#lockKey(names), async () => {
        const present = await this.head(key);
        condition(present);
        await this.#inParent(names, async ({ directory, name }) => {
          if ((await lstatIfExists(directory.pathOf(name)))?.isDirectory() === true)
            throw isDirectoryError(key);
          await giveFile(path, await this.#deps.directory.fileOwner());
          await moveFile(
            path,
            directory.pathOf(name),
            directory.pathOf(temporaryName(name, this.#deps.ids.resource())),
          ).catch((error: unknown) => {
            throw isDirectoryConflict(error) ? isDirectoryError(key) : error;
          });
          await directory.sync();
        });
        if (present !== undefined) this.#deps.usage.adjust(-present.size);
        await this.#metadata.write(key, stats, metadata);
        return toStoredObject(key, stats, metadata);
      });
    } finally {
      await rm(path, { force: true });
    }
  }

  /** Does nothing if the object does not exist or is a directory that is not empty. */
  async remove(key: string): Promise<void> {
    const { names, folder: isFolder } = objectPath(key);
    const parents = await this.#deps.locks.runExclusive(this.#lockKey(names), () =>
      withParentDirectory(this.#deps.directory.path, names, async ({ directory, name, parentNames }) => {
        const present = await lstatIfExists(directory.pathOf(name));
        if (present === undefined || present.isDirectory() !== isFolder) return parentNames;
        if (!isFolder) await rm(directory.pathOf(name), { force: true });
        else if (!(await removeEmptyDirectory(directory.pathOf(name)))) return parentNames;
        await directory.sync();
        if (present.isFile()) this.#deps.usage.adjust(-Number(present.size));
        await this.#metadata.remove(key);
        return parentNames;
      }),
    );
    if (parents !== undefined) await this.#removeEmptyParents(parents);
  }

  /**
   * Reserves space for an object, less the one it replaces; throws if the volume is too small. Call the
   * returned function with true when the bytes were written, or with false when they were not.
   */
  async reserve(length: number, replaced = 0): Promise<(done: boolean) => void> {
    const { usage, capacity, checkRoom, takeShare } = this.#deps;
    checkRoom?.();
    let releaseShare: (() => void) | undefined;
    const release = await usage.reserve(length, (used) => {
      if (used - replaced + length > capacity)
        throw new BerthError(
          'too-large',
          `the volume has ${capacity} bytes, of which ${used} are used or reserved: there is no room for ` +
            `${length} more; make it larger or delete files`,
        );
      releaseShare = takeShare?.(length);
    });
    return (done) => {
      if (!done) releaseShare?.();
      releaseShare = undefined;
      release(done);
    };
  }

  /** A temporary path for a file that is being received. */
  temporaryPath(): string {
    return join(this.#deps.directory.statePath, 'arriving', this.#deps.ids.resource());
  }

  async #putFile(key: string, object: NewObject, condition: WriteCondition): Promise<StoredObject> {
    const release = await this.reserve(object.length, (await this.head(key))?.size);
    try {
      const arrived = await receiveFile(this.temporaryPath(), object.bytes, object.length);
      const stored = await this.commitFile(
        key,
        arrived,
        { etag: arrived.md5, headers: object.headers, checksums: object.checksums?.() ?? {} },
        condition,
      );
      release(true);
      return stored;
    } finally {
      release(false);
    }
  }

  async #putFolder(key: string, names: string[]): Promise<StoredObject> {
    return this.#deps.locks.runExclusive(this.#lockKey(names), async () => {
      const stats = await this.#inParent(names, async ({ directory, name }) => {
        await createDirectory(directory.pathOf(name), await this.#deps.directory.fileOwner());
        const made = await lstatIfExists(directory.pathOf(name));
        if (made !== undefined && !made.isDirectory())
          throw ruleError(`${JSON.stringify(key.slice(0, 80))} is a file in this volume`);
        await directory.sync();
        return made;
      });
      // The directory was created explicitly, so it stays when it becomes empty.
      await this.#metadata.remove(key);
      if (stats === undefined)
        throw new BerthError('unavailable', 'the folder was deleted while it was created; try again');
      return this.#describe(key, stats);
    });
  }

  /** Creates missing parent directories. Retries if one is removed meanwhile with its last object. */
  async #inParent<T>(names: readonly string[], use: (location: EntryLocation) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        const done = await withParentDirectory(
          this.#deps.directory.path,
          names,
          async (location) => ({ value: await use(location) }),
          (path, parents) => this.#createImplicitDirectory(path, parents),
        );
        if (done === undefined)
          throw ruleError(
            `a name on the way to ${JSON.stringify(names.join('/').slice(0, 80))} is a file, or a link ` +
              'that leads out of this volume',
          );
        return done.value;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || tries === MAX_ATTEMPTS) throw error;
      }
    }
  }

  /**
   * Creates a directory and marks it as implicit. The lock keeps a concurrent removal from deleting the new
   * mark.
   */
  #createImplicitDirectory(path: string, names: readonly string[]): Promise<void> {
    return this.#deps.locks.runExclusive(this.#lockKey(names), async () => {
      if (!(await createDirectory(path, await this.#deps.directory.fileOwner()))) return;
      const stats = await lstatIfExists(path);
      if (stats !== undefined) await this.#metadata.markImplicitDirectory(folderKey(names), stats);
    });
  }

  /**
   * Removes directories that exist only for objects, when the last object is removed. Directories that a pod
   * created stay.
   */
  async #removeEmptyParents(names: readonly string[]): Promise<void> {
    if (names.length === 0) return;
    const removed = await this.#deps.locks.runExclusive(this.#lockKey(names), () =>
      withParentDirectory(this.#deps.directory.path, names, (location) =>
        this.#removeIfImplicit(location, folderKey(names)),
      ),
    );
    if (removed === true) await this.#removeEmptyParents(names.slice(0, -1));
  }

  async #removeIfImplicit({ directory, name }: EntryLocation, key: string): Promise<boolean> {
    const stats = await lstatIfExists(directory.pathOf(name));
    if (
      stats === undefined ||
      !stats.isDirectory() ||
      !(await this.#metadata.isImplicitDirectory(key, stats))
    )
      return false;
    if (!(await removeEmptyDirectory(directory.pathOf(name)))) return false;
    await this.#metadata.remove(key);
    return true;
  }

  async #openHandle(names: readonly string[], folder: boolean): Promise<FileHandle | undefined> {
    const direct = await this.#openAt(names, folder);
    if (direct !== 'a link') return direct;
    const real = await resolveInside(this.#deps.directory.path, names);
    const target = real === undefined || real.length === 0 ? undefined : await this.#openAt(real, folder);
    return target === 'a link' ? undefined : target;
  }

  /** Opens only files and directories: opening a pipe or a device has side effects. */
  #openAt(names: readonly string[], isFolder: boolean): Promise<FileHandle | 'a link' | undefined> {
    return withParentDirectory(this.#deps.directory.path, names, async ({ directory, name }) => {
      const entry = await lstatIfExists(directory.pathOf(name));
      if (entry?.isSymbolicLink() === true) return 'a link';
      if (entry === undefined || !(isFolder ? entry.isDirectory() : entry.isFile())) return undefined;
      try {
        const handle = await open(
          directory.pathOf(name),
          constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
        );
        const stats = await handle.stat();
        const isWanted = isFolder ? stats.isDirectory() : stats.isFile();
        if (isWanted && !isForeign(stats, await this.#deps.directory.fileOwner())) return handle;
        await handle.close();
        return undefined;
      } catch (error) {
        if (isMissingPathError(error)) return undefined;
        throw error;
      }
    });
  }

  async #describe(key: string, stats: BigIntStats): Promise<StoredObject> {
    if (stats.isDirectory())
      return toStoredObject(key, stats, {
        etag: EMPTY_MD5,
        headers: { 'content-type': 'application/x-directory' },
        checksums: {},
      });
    return toStoredObject(
      key,
      stats,
      (await this.#metadata.read(key, stats)) ?? { etag: derivedEtag(stats), headers: {}, checksums: {} },
    );
  }

  /** The lock of a path. A file and a directory of the same name share it. */
  #lockKey(names: readonly string[]): string {
    return `${this.#deps.directory.path}\n${names.join('/')}`;
  }
}

const EMPTY_MD5 = 'd41d8cd98f00b204e9800998ecf8427e';

function toStoredObject(key: string, stats: BigIntStats, metadata: ObjectMetadata): StoredObject {
  const folder = stats.isDirectory();
  return {
    key,
    folder,
    size: folder ? 0 : Number(stats.size),
    modifiedAt: Number(stats.mtimeMs),
    ...metadata,
  };
}

function folderKey(names: readonly string[]): string {
  return `${names.join('/')}/`;
}

function isDirectoryError(key: string): BerthError {
  return ruleError(`${JSON.stringify(key.slice(0, 80))} is a folder in this volume`);
}

/** A pod created a directory at this path after the check. */
function isDirectoryConflict(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  return code === 'EISDIR' || code === 'ENOTEMPTY' || code === 'EEXIST';
}
