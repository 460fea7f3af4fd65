import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Turns } from '../../engines/turns.ts';
import type { Clock } from '../../support/clock.ts';
import type { Ids } from '../../support/ids.ts';
import { BerthError, rule } from '../../support/errors.ts';
import type { ObjectHeaders } from './cards.ts';
import { makeFolder } from './ground.ts';
import type { Ground } from './ground.ts';
import { isAbsence } from './held-folder.ts';
import { receive } from './incoming.ts';
import { objectPath } from './object-key.ts';
import type { Condition, NewObject, Objects, StoredObject } from './objects.ts';
import type { Usage } from './usage.ts';

export const MOST_PARTS = 10_000;
/** An upload that nobody completed or gave up in this time is forgotten. */
const KEEP_MS = 7 * 24 * 3_600_000;
/** The same for a file that was arriving when Berth ended. */
const KEEP_ARRIVING_MS = 24 * 3_600_000;
const UPLOAD_ID = /^[a-z0-9]{8,64}$/;
const ABOUT = 'upload.json';

export interface Upload {
  id: string;
  key: string;
  headers: ObjectHeaders;
  startedAt: number;
  /** What the client said of where it comes from, so that it finds it again. */
  source?: string;
}

export interface Part {
  number: number;
  /** The MD5 of its content, in hex. */
  etag: string;
  size: number;
  modifiedAt: number;
}

export interface UploadsParts {
  objects: Objects;
  ground: Ground;
  usage: Usage;
  turns: Turns;
  clock: Clock;
  ids: Ids;
}

/** Objects that arrive in parts. An upload is a folder aside: a file that says what it is to become, and one for each part, named by its number and MD5. */
export class Uploads {
  readonly #parts: UploadsParts;
  readonly #folder: string;

  constructor(parts: UploadsParts) {
    this.#parts = parts;
    this.#folder = join(parts.ground.aside, 'uploads');
  }

  async begin(key: string, headers: ObjectHeaders, source?: string): Promise<Upload> {
    if (objectPath(key).folder) throw rule('a key that ends in a slash is a folder, and has no content');
    await this.#sweep();
    const upload: Upload = {
      id: this.#parts.ids.resource(32),
      key,
      headers,
      startedAt: this.#parts.clock.now(),
      ...(source !== undefined && { source }),
    };
    await this.#parts.ground.use(async () => {
      for (const folder of [this.#folder, this.#at(upload.id)]) await makeFolder(folder);
      await writeFile(join(this.#at(upload.id), `${ABOUT}.new`), JSON.stringify(upload));
      await rename(join(this.#at(upload.id), `${ABOUT}.new`), join(this.#at(upload.id), ABOUT));
    });
    return upload;
  }

  /** Undefined where there is none of this id for this key. */
  async find(id: string, key: string): Promise<Upload | undefined> {
    const upload = UPLOAD_ID.test(id) ? await this.#read(id) : undefined;
    return upload?.key === key ? upload : undefined;
  }

  /** In the order of keys, then of their beginning. */
  async list(): Promise<Upload[]> {
    const uploads = await Promise.all((await this.#names(this.#folder)).map((id) => this.#read(id)));
    return uploads
      .filter((upload) => upload !== undefined)
      .sort((one, other) =>
        one.key < other.key ? -1 : one.key > other.key ? 1 : one.startedAt - other.startedAt,
      );
  }

  /** A part that comes again takes the place of the one before. */
  put({ id }: Upload, number: number, part: Pick<NewObject, 'bytes' | 'length'>): Promise<Part> {
    return this.#parts.ground.use(() => this.#put(id, number, part));
  }

  /** In the order of their numbers. */
  async parts(id: string): Promise<Part[]> {
    const parts = (await this.#names(this.#at(id))).map(readName).filter((part) => part !== undefined);
    const sized = await Promise.all(
      parts.map(async (part): Promise<Part | undefined> => {
        try {
          const { size, mtimeMs } = await stat(join(this.#at(id), nameOf(part)));
          return { ...part, size, modifiedAt: mtimeMs };
        } catch (error) {
          if (isAbsence(error)) return undefined;
          throw error;
        }
      }),
    );
    return sized.filter((part) => part !== undefined).sort((one, other) => one.number - other.number);
  }

  /** Makes the object out of these parts. They are on disk until it is there. */
  complete(
    upload: Upload,
    chosen: readonly Pick<Part, 'number' | 'etag'>[],
    condition: Condition,
  ): Promise<StoredObject> {
    const { ground, turns } = this.#parts;
    return ground.use(() => turns.run(upload.id, () => this.#complete(upload, chosen, condition)));
  }

  async abort({ id }: Upload): Promise<void> {
    await this.#parts.turns.run(id, () => this.#drop(id));
  }

  async #put(
    id: string,
    number: number,
    { bytes, length }: Pick<NewObject, 'bytes' | 'length'>,
  ): Promise<Part> {
    const settle = await this.#parts.objects.reserve(length);
    try {
      const arrived = await receive(this.#parts.objects.temporary(), bytes, length);
      return await this.#parts.turns.run(id, async () => {
        try {
          if ((await this.#read(id)) === undefined) throw gone();
          // More than one where Berth ended between the two steps that follow.
          const before = (await this.parts(id)).filter((part) => part.number === number);
          const name = nameOf({ number, etag: arrived.md5 });
          await rename(arrived.path, join(this.#at(id), name));
          settle(true);
          for (const part of before) {
            this.#parts.usage.changed(-part.size);
            if (nameOf(part) !== name) await rm(join(this.#at(id), nameOf(part)), { force: true });
          }
          return { number, etag: arrived.md5, size: length, modifiedAt: Number(arrived.stats.mtimeMs) };
        } finally {
          await rm(arrived.path, { force: true });
        }
      });
    } finally {
      settle(false);
    }
  }

  async #complete(
    { id, key, headers }: Upload,
    chosen: readonly Pick<Part, 'number' | 'etag'>[],
    condition: Condition,
  ): Promise<StoredObject> {
    if ((await this.#read(id)) === undefined) throw gone();
    const there = new Map((await this.parts(id)).map((part) => [nameOf(part), part]));
    const parts = chosen.map((wanted) => {
      const part = there.get(nameOf(wanted));
      if (part === undefined) throw rule(`part ${wanted.number} with this ETag was not uploaded`);
      return part;
    });
    const paths = parts.map((part) => join(this.#at(id), nameOf(part)));
    const arrived = await receive(
      this.#parts.objects.temporary(),
      contents(paths),
      parts.reduce((sum, { size }) => sum + size, 0),
    );
    const stored = await this.#parts.objects.place(
      key,
      arrived,
      { etag: joinedEtag(parts), headers, checksums: {} },
      condition,
    );
    this.#parts.usage.changed(stored.size);
    await this.#drop(id);
    return stored;
  }

  /** First what says that it is one, so that an upload that is half gone is none. */
  async #drop(id: string): Promise<void> {
    const size = (await this.parts(id)).reduce((sum, part) => sum + part.size, 0);
    await rm(join(this.#at(id), ABOUT), { force: true });
    await rm(this.#at(id), { recursive: true, force: true });
    this.#parts.usage.changed(-size);
  }

  async #sweep(): Promise<void> {
    const now = this.#parts.clock.now();
    for (const { id, startedAt } of await this.list())
      if (now - startedAt > KEEP_MS) await this.#parts.turns.run(id, () => this.#drop(id));
    const arriving = join(this.#parts.ground.aside, 'arriving');
    for (const name of await this.#names(arriving)) {
      const found = await stat(join(arriving, name)).catch(() => undefined);
      if (found !== undefined && now - found.mtimeMs > KEEP_ARRIVING_MS)
        await rm(join(arriving, name), { force: true });
    }
  }

  async #read(id: string): Promise<Upload | undefined> {
    try {
      return JSON.parse(await readFile(join(this.#at(id), ABOUT), 'utf8')) as Upload;
    } catch (error) {
      if (isAbsence(error)) return undefined;
      throw error;
    }
  }

  async #names(folder: string): Promise<string[]> {
    try {
      return await readdir(folder);
    } catch (error) {
      if (isAbsence(error)) return [];
      throw error;
    }
  }

  #at(id: string): string {
    return join(this.#folder, id);
  }
}

function gone(): BerthError {
  return new BerthError('not-found', 'this upload was completed or given up meanwhile');
}

/** As S3 has it: the MD5 of the MD5s, and how many there were. */
export function joinedEtag(parts: readonly Pick<Part, 'etag'>[]): string {
  const all = createHash('md5');
  for (const { etag } of parts) all.update(Buffer.from(etag, 'hex'));
  return `${all.digest('hex')}-${parts.length}`;
}

function nameOf({ number, etag }: Pick<Part, 'number' | 'etag'>): string {
  return `${String(number).padStart(5, '0')}-${etag}`;
}

function readName(name: string): Pick<Part, 'number' | 'etag'> | undefined {
  const [, number, etag] = /^(\d{5})-([0-9a-f]{32})$/.exec(name) ?? [];
  return number === undefined || etag === undefined ? undefined : { number: Number(number), etag };
}

async function* contents(paths: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const path of paths) yield* createReadStream(path, { highWaterMark: 1024 ** 2 });
}
