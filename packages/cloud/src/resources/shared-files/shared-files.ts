import { createWriteStream } from 'node:fs';
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { SharedFile, SharedFileStore } from '../../store/shared-file-store.ts';
import type { Clock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import type { Ids } from '../../support/ids.ts';
import type { Bucket } from '../object-storage/bucket.ts';

/** Of one row, before base64. */
const PART_BYTES = 3 * 1024 ** 2;
/** An upload that has not ended after this never will. */
const INCOMPLETE_TTL_MS = 24 * 3_600_000;
/** A copy that is younger may be of a file that is about to be complete, or be read by a worker that starts. */
const COPY_GRACE_MS = 3_600_000;

export interface SharedFilesDeps {
  store: SharedFileStore;
  /** Has the content of files. Without one, the database has it too. */
  bucket?: Bucket | undefined;
  /** For copies on this server's disk. */
  folder: string;
  clock: Clock;
  ids: Ids;
  onProblem: (what: string, error: unknown) => void;
}

/**
 * Files that every server of an installation has. The database knows them, and a server that needs one as a
 * file gets a copy, `<folder>/<version>/<last part of the name>`. A version never changes, so a copy never
 * becomes stale.
 */
export class SharedFiles {
  readonly #deps: SharedFilesDeps;
  readonly #copying = new Map<string, Promise<string>>();

  constructor(deps: SharedFilesDeps) {
    this.#deps = deps;
  }

  /** Takes the file at the path, which becomes the copy of this server unless it needs none. */
  async add(name: string, path: string, { keepCopy = true } = {}): Promise<void> {
    const { store, bucket, clock, ids } = this.#deps;
    const { size } = await stat(path);
    const version = ids.resource();
    const upload = { name, version, size, parts: 0, createdAt: clock.now() };
    if (bucket !== undefined) await bucket.add(objectOf(upload), { file: path, start: 0, length: size });
    else upload.parts = await this.#addParts(version, path);
    if (keepCopy) {
      const copy = this.#copyOf(upload);
      await mkdir(dirname(copy), { recursive: true });
      await rename(path, copy);
    }
    const replaced = await store.publish(upload);
    if (replaced !== undefined) await this.#removeObject(replaced);
  }

  async size(name: string): Promise<number | undefined> {
    return (await this.#deps.store.find(name))?.size;
  }

  /** The path of this server's copy; undefined if there is no such file. */
  async file(name: string): Promise<string | undefined> {
    const found = await this.#deps.store.find(name);
    if (found === undefined) return undefined;
    const copy = this.#copyOf(found);
    if ((await stat(copy).catch(() => undefined)) !== undefined) return copy;
    const copying =
      this.#copying.get(copy) ??
      this.#copy(found, copy).finally(() => {
        this.#copying.delete(copy);
      });
    this.#copying.set(copy, copying);
    return copying;
  }

  /** The content, without a copy here; undefined if there is no such file. */
  async open(name: string): Promise<Readable | undefined> {
    const found = await this.#deps.store.find(name);
    return found && this.#open(found);
  }

  /** Deletes files of this prefix that were added before this time. */
  async expire(prefix: string, before: number): Promise<void> {
    for (const found of await this.#deps.store.list(prefix))
      if (found.createdAt < before) await this.#remove(found);
  }

  /** All whose names begin with the prefix. Copies on other servers go with their next sweep. */
  async removeAll(prefix: string): Promise<void> {
    for (const found of await this.#deps.store.list(prefix)) await this.#remove(found);
  }

  async #remove(found: SharedFile): Promise<void> {
    await this.#deps.store.remove(found);
    await this.#removeObject(found);
    await rm(dirname(this.#copyOf(found)), { recursive: true, force: true });
  }

  /** Deletes copies of files that are gone, and what uploads left that never ended. */
  async sweep(): Promise<void> {
    const { store, folder, clock } = this.#deps;
    await store.removeIncomplete(clock.now() - INCOMPLETE_TTL_MS);
    // Copies first: a file that is added meanwhile has none yet.
    const copies = await readdir(folder).catch(() => []);
    const versions = new Set((await store.list('')).map(({ version }) => version));
    for (const version of copies)
      if (!versions.has(version) && (await this.#isOld(join(folder, version))))
        await rm(join(folder, version), { recursive: true, force: true });
  }

  async #isOld(copy: string): Promise<boolean> {
    const written = await stat(copy).catch(() => undefined);
    return written !== undefined && this.#deps.clock.now() - written.mtimeMs > COPY_GRACE_MS;
  }

  async #addParts(version: string, path: string): Promise<number> {
    const { store, clock } = this.#deps;
    const file = await open(path);
    try {
      const buffer = Buffer.alloc(PART_BYTES);
      for (let part = 0; ; part += 1) {
        const { bytesRead } = await file.read(buffer, 0, PART_BYTES, part * PART_BYTES);
        // An empty file has one part, so that it is not looked for in a bucket.
        if (bytesRead === 0 && part > 0) return part;
        await store.addPart(version, part, buffer.toString('base64', 0, bytesRead), clock.now());
        if (bytesRead < PART_BYTES) return part + 1;
      }
    } finally {
      await file.close();
    }
  }

  async #copy(found: SharedFile, copy: string): Promise<string> {
    const draft = `${copy}.${this.#deps.ids.resource()}.part`;
    await mkdir(dirname(copy), { recursive: true });
    try {
      await pipeline(await this.#open(found), createWriteStream(draft));
      const { size } = await stat(draft);
      if (size !== found.size)
        throw new BerthError(
          'unavailable',
          `${found.name} has ${found.size} bytes, and ${size} could be read; try again`,
        );
      await rename(draft, copy);
      return copy;
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
  }

  async #open(found: SharedFile): Promise<Readable> {
    const { store, bucket } = this.#deps;
    if (found.parts > 0) {
      const read = async function* (): AsyncGenerator<Buffer> {
        for (let part = 0; part < found.parts; part += 1)
          yield Buffer.from((await store.part(found.version, part)) ?? '', 'base64');
      };
      return Readable.from(read());
    }
    if (bucket === undefined)
      throw new BerthError(
        'unavailable',
        `${found.name} is in an S3 bucket, and images.bucket is not set on this server`,
      );
    return bucket.open(objectOf(found));
  }

  async #removeObject(found: SharedFile): Promise<void> {
    const { bucket, onProblem } = this.#deps;
    if (found.parts > 0) return;
    await bucket
      ?.remove(objectOf(found))
      .catch((error: unknown) => onProblem(`${found.name} could not be deleted from the bucket`, error));
  }

  #copyOf({ name, version }: SharedFile): string {
    return join(this.#deps.folder, version, name.slice(name.lastIndexOf('/') + 1));
  }
}

function objectOf({ name, version }: SharedFile): string {
  const at = name.lastIndexOf('/') + 1;
  return `${name.slice(0, at)}${version}/${name.slice(at)}`;
}
