import { constants } from 'node:fs';
import type { BigIntStats, ReadStream } from 'node:fs';
import { copyFile, open, rename, rm } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { Turns } from '../../engines/turns.ts';
import type { Ids } from '../../support/ids.ts';
import { BerthError, rule } from '../../support/errors.ts';
import { nameBeside } from '../../support/name-beside.ts';
import { Cards, derivedEtag } from './cards.ts';
import type { Card, ObjectHeaders } from './cards.ts';
import { makeFolder, removeEmpty } from './ground.ts';
import type { Ground } from './ground.ts';
import { descend, followed, isAbsence, lstatIfThere } from './held-folder.ts';
import type { Place } from './held-folder.ts';
import { receive } from './incoming.ts';
import type { Arrived } from './incoming.ts';
import { listObjects } from './listing.ts';
import type { Listing, ListingQuery } from './listing.ts';
import { objectPath } from './object-key.ts';
import type { Usage } from './usage.ts';

/** A file of a volume, or a folder, as an object. */
export interface StoredObject extends Card {
  key: string;
  folder: boolean;
  size: number;
  modifiedAt: number;
}

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
export type Condition = (present: StoredObject | undefined) => void;

export interface ObjectsParts {
  ground: Ground;
  /** In bytes. */
  capacity: number;
  usage: Usage;
  turns: Turns;
  ids: Ids;
}

/** How often a folder is made again that went between its making and its use. */
const TRIES = 5;

/** The files of one network volume, as objects under keys. */
export class Objects {
  readonly #parts: ObjectsParts;
  readonly #cards: Cards;

  constructor(parts: ObjectsParts) {
    this.#parts = parts;
    this.#cards = new Cards(join(parts.ground.aside, 'cards'));
  }

  list(query: ListingQuery): Promise<Listing> {
    return listObjects(this.#parts.ground.root, query, (key, file) => this.#describe(key, file));
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
  async put(key: string, object: NewObject, condition: Condition = () => undefined): Promise<StoredObject> {
    const { names, folder } = objectPath(key);
    if (folder && object.length > 0) throw rule('a key that ends in a slash is a folder, and has no content');
    return this.#parts.ground.use(() =>
      folder ? this.#putFolder(key, names) : this.#putFile(key, object, condition),
    );
  }

  /** Puts a file that lies aside under a key; to be called while the ground is used. The file is gone from there afterwards, whatever happens. */
  async place(
    key: string,
    { path, stats }: Arrived,
    card: Card,
    condition: Condition,
  ): Promise<StoredObject> {
    const { names } = objectPath(key);
    try {
      return await this.#parts.turns.run(this.#turnOf(names), async () => {
        const present = await this.head(key);
        condition(present);
        await this.#inParent(names, async ({ folder, name }) => {
          if ((await lstatIfThere(folder.at(name)))?.isDirectory() === true) throw folderThere(key);
          await move(path, folder.at(name), folder.at(nameBeside(name, this.#parts.ids.resource()))).catch(
            (error: unknown) => {
              throw isFolderThere(error) ? folderThere(key) : error;
            },
          );
          await folder.sync();
        });
        if (present !== undefined) this.#parts.usage.changed(-present.size);
        await this.#cards.write(key, stats, card);
        return shown(key, stats, card);
      });
    } finally {
      await rm(path, { force: true });
    }
  }

  /** Of what is not there, or a folder with something in it, nothing is removed, and that is no failure. */
  async remove(key: string): Promise<void> {
    const { names, folder: isFolder } = objectPath(key);
    const way = await this.#parts.turns.run(this.#turnOf(names), () =>
      descend(this.#parts.ground.root, names, async ({ folder, name, way }) => {
        const present = await lstatIfThere(folder.at(name));
        if (present === undefined || present.isDirectory() !== isFolder) return way;
        if (!isFolder) await rm(folder.at(name), { force: true });
        else if (!(await removeEmpty(folder.at(name)))) return way;
        await folder.sync();
        if (present.isFile()) this.#parts.usage.changed(-Number(present.size));
        await this.#cards.remove(key);
        return way;
      }),
    );
    if (way !== undefined) await this.#tidy(way);
  }

  /** Refuses what the volume has no room for, less what it replaces. Answers the way to say that it came, or that it did not. */
  reserve(length: number, replaced = 0): Promise<(done: boolean) => void> {
    const { usage, capacity } = this.#parts;
    return usage.promise(length, (used) => {
      if (used - replaced + length <= capacity) return;
      throw new BerthError(
        'too-large',
        `the volume has ${capacity} bytes, of which ${used} are used or promised: there is no room for ${length} more; make it larger or remove something`,
      );
    });
  }

  /** A path aside for a file that arrives. */
  temporary(): string {
    return join(this.#parts.ground.aside, 'arriving', this.#parts.ids.resource());
  }

  async #putFile(key: string, object: NewObject, condition: Condition): Promise<StoredObject> {
    const settle = await this.reserve(object.length, (await this.head(key))?.size);
    try {
      const arrived = await receive(this.temporary(), object.bytes, object.length);
      const stored = await this.place(
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
    return this.#parts.turns.run(this.#turnOf(names), async () => {
      const stats = await this.#inParent(names, async ({ folder, name }) => {
        await makeFolder(folder.at(name));
        const made = await lstatIfThere(folder.at(name));
        if (made !== undefined && !made.isDirectory())
          throw rule(`${JSON.stringify(key.slice(0, 80))} is a file in this volume`);
        await folder.sync();
        return made;
      });
      // It was asked for by name: it stays when it is empty.
      await this.#cards.remove(key);
      if (stats === undefined) throw new BerthError('unavailable', 'the folder went while it was made');
      return this.#describe(key, stats);
    });
  }

  /** Makes the folders on the way. One that goes in between, since its last object was removed, is made again. */
  async #inParent<T>(names: readonly string[], use: (place: Place) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        const done = await descend(
          this.#parts.ground.root,
          names,
          async (place) => ({ value: await use(place) }),
          (path, way) => this.#makeOnTheWay(path, way),
        );
        if (done === undefined)
          throw rule(
            `a name on the way to ${JSON.stringify(names.join('/').slice(0, 80))} is a file, or a link that leads out of this volume`,
          );
        return done.value;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || tries === TRIES) throw error;
      }
    }
  }

  /** Notes that it was made for an object. One that is removed at the same time takes its note along first. */
  #makeOnTheWay(path: string, names: readonly string[]): Promise<void> {
    return this.#parts.turns.run(this.#turnOf(names), async () => {
      if (!(await makeFolder(path))) return;
      const stats = await lstatIfThere(path);
      if (stats !== undefined) await this.#cards.noteFolder(folderKey(names), stats);
    });
  }

  /** A folder that is there only because an object was put below it goes with its last one. What a pod made stays. */
  async #tidy(names: readonly string[]): Promise<void> {
    if (names.length === 0) return;
    const gone = await this.#parts.turns.run(this.#turnOf(names), () =>
      descend(this.#parts.ground.root, names, (place) => this.#removeIfOurs(place, folderKey(names))),
    );
    if (gone === true) await this.#tidy(names.slice(0, -1));
  }

  async #removeIfOurs({ folder, name }: Place, key: string): Promise<boolean> {
    const stats = await lstatIfThere(folder.at(name));
    if (stats === undefined || !stats.isDirectory() || !(await this.#cards.isOurFolder(key, stats)))
      return false;
    if (!(await removeEmpty(folder.at(name)))) return false;
    await this.#cards.remove(key);
    return true;
  }

  async #openHandle(names: readonly string[], folder: boolean): Promise<FileHandle | undefined> {
    const direct = await this.#openAt(names, folder);
    if (direct !== 'a link') return direct;
    const real = await followed(this.#parts.ground.root, names);
    const behind = real === undefined || real.length === 0 ? undefined : await this.#openAt(real, folder);
    return behind === 'a link' ? undefined : behind;
  }

  /** Files and folders alone: to open a pipe or a device would do something. */
  #openAt(names: readonly string[], isFolder: boolean): Promise<FileHandle | 'a link' | undefined> {
    return descend(this.#parts.ground.root, names, async ({ folder, name }) => {
      const seen = await lstatIfThere(folder.at(name));
      if (seen?.isSymbolicLink() === true) return 'a link';
      if (seen === undefined || !(isFolder ? seen.isDirectory() : seen.isFile())) return undefined;
      try {
        const handle = await open(
          folder.at(name),
          constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
        );
        const stats = await handle.stat();
        if (isFolder ? stats.isDirectory() : stats.isFile()) return handle;
        await handle.close();
        return undefined;
      } catch (error) {
        if (isAbsence(error)) return undefined;
        throw error;
      }
    });
  }

  async #describe(key: string, stats: BigIntStats): Promise<StoredObject> {
    if (stats.isDirectory())
      return shown(key, stats, {
        etag: EMPTY_MD5,
        headers: { 'content-type': 'application/x-directory' },
        checksums: {},
      });
    return shown(
      key,
      stats,
      (await this.#cards.read(key, stats)) ?? { etag: derivedEtag(stats), headers: {}, checksums: {} },
    );
  }

  /** A file and a folder of the same name take turns. */
  #turnOf(names: readonly string[]): string {
    return `${this.#parts.ground.root}\n${names.join('/')}`;
  }
}

const EMPTY_MD5 = 'd41d8cd98f00b204e9800998ecf8427e';

function shown(key: string, stats: BigIntStats, card: Card): StoredObject {
  const folder = stats.isDirectory();
  return { key, folder, size: folder ? 0 : Number(stats.size), modifiedAt: Number(stats.mtimeMs), ...card };
}

function folderKey(names: readonly string[]): string {
  return `${names.join('/')}/`;
}

function folderThere(key: string): BerthError {
  return rule(`${JSON.stringify(key.slice(0, 80))} is a folder in this volume`);
}

/** A pod made one since it was looked for. */
function isFolderThere(error: unknown): boolean {
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
