import { constants } from 'node:fs';
import type { BigIntStats, ReadStream } from 'node:fs';
import { copyFile, open, rename, rm } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { KeyedMutex } from '../../support/keyed-mutex.ts';
import type { Ids } from '../../support/ids.ts';
import { BerthError, ruleError } from '../../support/errors.ts';
import { temporaryName } from '../../support/temporary-name.ts';
import { ObjectMetadataStore, derivedEtag, type StoredObject } from './object-metadata.ts';
import type { ObjectMetadata, ObjectHeaders } from './object-metadata.ts';
import { createDirectory, removeEmptyDirectory } from './volume-directory.ts';
import type { VolumeDirectory } from './volume-directory.ts';
import { withParentDirectory, resolveInside, isMissingPathError, lstatIfExists } from './directory-handle.ts';
import type { EntryLocation } from './directory-handle.ts';
import { receiveFile } from './receive-file.ts';
import type { ReceivedFile } from './receive-file.ts';
import { listObjects } from './object-listing.ts';
import type { ObjectListing, ObjectListingQuery } from './object-listing.ts';
import { objectPath } from './object-key.ts';
import type { VolumeUsageMeter } from './volume-usage.ts';

/** An object that is held open: what is read is of one file, even where another takes its place meanwhile. */
export interface OpenObject extends StoredObject {
  /** From and up to these bytes, both included. It must be read to its end or destroyed. */
  read(from: number, to: number): ReadStream;
  close(): Promise<void>;
}

export interface NewObject {
  bytes: AsyncIterable<Uint8Array>;
  length: number;
  headers: ObjectHeaders;
  /** Known when all bytes have come. */
  checksums?: () => Readonly<Record<string, string>>;
}

/** May throw to refuse. Called when nothing can come between the look and the change. */
export type WriteCondition = (present: StoredObject | undefined) => void;

export interface VolumeObjectsDeps {
  directory: VolumeDirectory;
  /** In bytes. */
  capacity: number;
  usage: VolumeUsageMeter;
  locks: KeyedMutex;
  ids: Ids;
}

/** How often a folder is made again that went between its making and its use. */
const MAX_ATTEMPTS = 5;

/** The files of one network volume, as objects under keys. */
export class VolumeObjects {
  readonly #deps: VolumeObjectsDeps;
  readonly #cards: ObjectMetadataStore;

  constructor(deps: VolumeObjectsDeps) {
    this.#deps = deps;
    this.#cards = new ObjectMetadataStore(join(deps.directory.statePath, 'cards'));
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

  /** Nobody sees any of it before all of it is there and on disk. */
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

  /** Puts a file that lies aside under a key; to be called while the ground is used. The file is gone from there afterwards, whatever happens. */
  async commitFile(
    key: string,
    { path, stats }: ReceivedFile,
    card: ObjectMetadata,
    condition: WriteCondition,
  ): Promise<StoredObject> {
    const { names } = objectPath(key);
    try {
      return await this.#deps.locks.runExclusive(this.#turnOf(names), async () => {
        const present = await this.head(key);
        condition(present);
        await this.#inParent(names, async ({ directory, name }) => {
          if ((await lstatIfExists(directory.pathOf(name)))?.isDirectory() === true)
            throw isDirectoryError(key);
          await move(
            path,
            directory.pathOf(name),
            directory.pathOf(temporaryName(name, this.#deps.ids.resource())),
          ).catch((error: unknown) => {
            throw isDirectoryConflict(error) ? isDirectoryError(key) : error;
          });
          await directory.sync();
        });
        if (present !== undefined) this.#deps.usage.adjust(-present.size);
        await this.#cards.write(key, stats, card);
        return toStoredObject(key, stats, card);
      });
    } finally {
      await rm(path, { force: true });
    }
  }

  /** Of what is not there, or a folder with something in it, nothing is removed, and that is no failure. */
  async remove(key: string): Promise<void> {
    const { names, folder: isFolder } = objectPath(key);
    const way = await this.#deps.locks.runExclusive(this.#turnOf(names), () =>
      withParentDirectory(this.#deps.directory.path, names, async ({ directory, name, parentNames }) => {
        const present = await lstatIfExists(directory.pathOf(name));
        if (present === undefined || present.isDirectory() !== isFolder) return parentNames;
        if (!isFolder) await rm(directory.pathOf(name), { force: true });
        else if (!(await removeEmptyDirectory(directory.pathOf(name)))) return parentNames;
        await directory.sync();
        if (present.isFile()) this.#deps.usage.adjust(-Number(present.size));
        await this.#cards.remove(key);
        return parentNames;
      }),
    );
    if (way !== undefined) await this.#tidy(way);
  }

  /** Refuses what the volume has no room for, less what it replaces. Answers the way to say that it came, or that it did not. */
  reserve(length: number, replaced = 0): Promise<(done: boolean) => void> {
    const { usage, capacity } = this.#deps;
    return usage.reserve(length, (used) => {
      if (used - replaced + length <= capacity) return;
      throw new BerthError(
        'too-large',
        `the volume has ${capacity} bytes, of which ${used} are used or promised: there is no room for ${length} more; make it larger or remove something`,
      );
    });
  }

  /** A path aside for a file that arrives. */
  temporaryPath(): string {
    return join(this.#deps.directory.statePath, 'arriving', this.#deps.ids.resource());
  }

  async #putFile(key: string, object: NewObject, condition: WriteCondition): Promise<StoredObject> {
    const settle = await this.reserve(object.length, (await this.head(key))?.size);
    try {
      const arrived = await receiveFile(this.temporaryPath(), object.bytes, object.length);
      const stored = await this.commitFile(
        key,
        arrived,
        { etag: arrived.md5, headers: object.headers, checksums: object.checksums?.() ?? {} },
        condition,
      );
      settle(true);
      return stored;
    } finally {
      settle(false);
    }
  }

  async #putFolder(key: string, names: string[]): Promise<StoredObject> {
    return this.#deps.locks.runExclusive(this.#turnOf(names), async () => {
      const stats = await this.#inParent(names, async ({ directory, name }) => {
        await createDirectory(directory.pathOf(name));
        const made = await lstatIfExists(directory.pathOf(name));
        if (made !== undefined && !made.isDirectory())
          throw ruleError(`${JSON.stringify(key.slice(0, 80))} is a file in this volume`);
        await directory.sync();
        return made;
      });
      // It was asked for by name: it stays when it is empty.
      await this.#cards.remove(key);
      if (stats === undefined) throw new BerthError('unavailable', 'the folder went while it was made');
      return this.#describe(key, stats);
    });
  }

  /** Makes the folders on the way. One that goes in between, since its last object was removed, is made again. */
  async #inParent<T>(names: readonly string[], use: (place: EntryLocation) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        const done = await withParentDirectory(
          this.#deps.directory.path,
          names,
          async (place) => ({ value: await use(place) }),
          (path, way) => this.#makeOnTheWay(path, way),
        );
        if (done === undefined)
          throw ruleError(
            `a name on the way to ${JSON.stringify(names.join('/').slice(0, 80))} is a file, or a link that leads out of this volume`,
          );
        return done.value;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || tries === MAX_ATTEMPTS) throw error;
      }
    }
  }

  /** Notes that it was made for an object. One that is removed at the same time takes its note along first. */
  #makeOnTheWay(path: string, names: readonly string[]): Promise<void> {
    return this.#deps.locks.runExclusive(this.#turnOf(names), async () => {
      if (!(await createDirectory(path))) return;
      const stats = await lstatIfExists(path);
      if (stats !== undefined) await this.#cards.markImplicitDirectory(folderKey(names), stats);
    });
  }

  /** A folder that is there only because an object was put below it goes with its last one. What a pod made stays. */
  async #tidy(names: readonly string[]): Promise<void> {
    if (names.length === 0) return;
    const gone = await this.#deps.locks.runExclusive(this.#turnOf(names), () =>
      withParentDirectory(this.#deps.directory.path, names, (place) =>
        this.#removeIfOurs(place, folderKey(names)),
      ),
    );
    if (gone === true) await this.#tidy(names.slice(0, -1));
  }

  async #removeIfOurs({ directory, name }: EntryLocation, key: string): Promise<boolean> {
    const stats = await lstatIfExists(directory.pathOf(name));
    if (stats === undefined || !stats.isDirectory() || !(await this.#cards.isImplicitDirectory(key, stats)))
      return false;
    if (!(await removeEmptyDirectory(directory.pathOf(name)))) return false;
    await this.#cards.remove(key);
    return true;
  }

  async #openHandle(names: readonly string[], folder: boolean): Promise<FileHandle | undefined> {
    const direct = await this.#openAt(names, folder);
    if (direct !== 'a link') return direct;
    const real = await resolveInside(this.#deps.directory.path, names);
    const behind = real === undefined || real.length === 0 ? undefined : await this.#openAt(real, folder);
    return behind === 'a link' ? undefined : behind;
  }

  /** Files and folders alone: to open a pipe or a device would do something. */
  #openAt(names: readonly string[], isFolder: boolean): Promise<FileHandle | 'a link' | undefined> {
    return withParentDirectory(this.#deps.directory.path, names, async ({ directory, name }) => {
      const seen = await lstatIfExists(directory.pathOf(name));
      if (seen?.isSymbolicLink() === true) return 'a link';
      if (seen === undefined || !(isFolder ? seen.isDirectory() : seen.isFile())) return undefined;
      try {
        const handle = await open(
          directory.pathOf(name),
          constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
        );
        const stats = await handle.stat();
        if (isFolder ? stats.isDirectory() : stats.isFile()) return handle;
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
      (await this.#cards.read(key, stats)) ?? { etag: derivedEtag(stats), headers: {}, checksums: {} },
    );
  }

  /** A file and a folder of the same name take turns. */
  #turnOf(names: readonly string[]): string {
    return `${this.#deps.directory.path}\n${names.join('/')}`;
  }
}

const EMPTY_MD5 = 'd41d8cd98f00b204e9800998ecf8427e';

function toStoredObject(key: string, stats: BigIntStats, card: ObjectMetadata): StoredObject {
  const folder = stats.isDirectory();
  return { key, folder, size: folder ? 0 : Number(stats.size), modifiedAt: Number(stats.mtimeMs), ...card };
}

function folderKey(names: readonly string[]): string {
  return `${names.join('/')}/`;
}

function isDirectoryError(key: string): BerthError {
  return ruleError(`${JSON.stringify(key.slice(0, 80))} is a folder in this volume`);
}

/** A pod made one since it was looked for. */
function isDirectoryConflict(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  return code === 'EISDIR' || code === 'ENOTEMPTY' || code === 'EEXIST';
}

/** In one step. Where a volume is a file system of its own it takes two: beside the target first. */
async function move(from: string, to: string, beside: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error;
    try {
      await copyFile(from, beside, constants.COPYFILE_EXCL);
      const copy = await open(beside, 'r+');
      await copy.sync().finally(() => copy.close());
      await rename(beside, to);
    } finally {
      await rm(beside, { force: true });
    }
  }
}
