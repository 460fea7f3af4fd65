import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { KeyedMutex } from '../../support/keyed-mutex.ts';
import type { Clock } from '../../support/clock.ts';
import type { Ids } from '../../support/ids.ts';
import { BerthError, ruleError } from '../../support/errors.ts';
import type { ObjectHeaders, StoredObject } from './object-metadata.ts';
import { createDirectory } from './volume-directory.ts';
import type { VolumeDirectory } from './volume-directory.ts';
import { isMissingPathError } from '../../support/directory-handle.ts';
import { receiveFile } from './receive-file.ts';
import { objectPath } from './object-key.ts';
import type { WriteCondition, NewObject, VolumeObjects } from './volume-objects.ts';
import type { VolumeUsageMeter } from './volume-usage.ts';

/** An upload that was neither completed nor aborted in this time is deleted. */
const UPLOAD_TTL_MS = 7 * 24 * 3_600_000;
/** The same for a partial file that was left when the server stopped. */
const PARTIAL_FILE_TTL_MS = 24 * 3_600_000;
const UPLOAD_ID = /^[a-z0-9]{8,64}$/;
const UPLOAD_FILE = 'upload.json';

export interface MultipartUpload {
  id: string;
  key: string;
  headers: ObjectHeaders;
  startedAt: number;
  /** Where the client uploads from, so that it can resume. */
  source?: string;
}

export interface UploadPart {
  number: number;
  /** The MD5 of its content, in hex. */
  etag: string;
  size: number;
  modifiedAt: number;
}

export interface MultipartUploadsDeps {
  objects: VolumeObjects;
  directory: VolumeDirectory;
  usage: VolumeUsageMeter;
  locks: KeyedMutex;
  clock: Clock;
  ids: Ids;
}

/**
 * Multipart uploads. An upload is a directory outside the volume: `upload.json` describes the object, and
 * each part is a file named by its number and MD5.
 */
export class MultipartUploads {
  readonly #deps: MultipartUploadsDeps;
  readonly #folder: string;

  constructor(deps: MultipartUploadsDeps) {
    this.#deps = deps;
    this.#folder = join(deps.directory.statePath, 'uploads');
  }

  async create(key: string, headers: ObjectHeaders, source?: string): Promise<MultipartUpload> {
    if (objectPath(key).folder) throw ruleError('a key that ends in a slash is a folder, and has no content');
    await this.#sweep();
    const upload: MultipartUpload = {
      id: this.#deps.ids.resource(32),
      key,
      headers,
      startedAt: this.#deps.clock.now(),
      ...(source !== undefined && { source }),
    };
    await this.#deps.directory.runWrite(async () => {
      for (const folder of [this.#folder, this.#at(upload.id)]) await createDirectory(folder);
      await writeFile(join(this.#at(upload.id), `${UPLOAD_FILE}.new`), JSON.stringify(upload));
      await rename(join(this.#at(upload.id), `${UPLOAD_FILE}.new`), join(this.#at(upload.id), UPLOAD_FILE));
    });
    return upload;
  }

  /** Undefined if uploaded is no upload with this id for this key. */
  async find(id: string, key: string): Promise<MultipartUpload | undefined> {
    const upload = UPLOAD_ID.test(id) ? await this.#read(id) : undefined;
    return upload?.key === key ? upload : undefined;
  }

  /** Ordered by key, then by start time. */
  async list(): Promise<MultipartUpload[]> {
    const uploads = await Promise.all((await this.#names(this.#folder)).map((id) => this.#read(id)));
    return uploads
      .filter((upload) => upload !== undefined)
      .sort((one, other) =>
        one.key < other.key ? -1 : one.key > other.key ? 1 : one.startedAt - other.startedAt,
      );
  }

  /** A part with the same number replaces the previous one. */
  putPart(
    { id }: MultipartUpload,
    number: number,
    part: Pick<NewObject, 'bytes' | 'length'>,
  ): Promise<UploadPart> {
    return this.#deps.directory.runWrite(() => this.#put(id, number, part));
  }

  /** Ordered by part number. */
  async listParts(id: string): Promise<UploadPart[]> {
    const parts = (await this.#names(this.#at(id)))
      .map(parsePartFileName)
      .filter((part) => part !== undefined);
    const sized = await Promise.all(
      parts.map(async (part): Promise<UploadPart | undefined> => {
        try {
          const { size, mtimeMs } = await stat(join(this.#at(id), partFileName(part)));
          return { ...part, size, modifiedAt: mtimeMs };
        } catch (error) {
          if (isMissingPathError(error)) return undefined;
          throw error;
        }
      }),
    );
    return sized.filter((part) => part !== undefined).sort((one, other) => one.number - other.number);
  }

  /** Creates the object from these parts. The parts are deleted after the object is on disk. */
  complete(
    upload: MultipartUpload,
    chosen: readonly Pick<UploadPart, 'number' | 'etag'>[],
    condition: WriteCondition,
  ): Promise<StoredObject> {
    const { directory, locks } = this.#deps;
    return directory.runWrite(() =>
      locks.runExclusive(upload.id, () => this.#complete(upload, chosen, condition)),
    );
  }

  async abort({ id }: MultipartUpload): Promise<void> {
    await this.#deps.locks.runExclusive(id, () => this.#drop(id));
  }

  async #put(
    id: string,
    number: number,
    { bytes, length }: Pick<NewObject, 'bytes' | 'length'>,
  ): Promise<UploadPart> {
    const release = await this.#deps.objects.reserve(length);
    try {
      const arrived = await receiveFile(this.#deps.objects.temporaryPath(), bytes, length);
      return await this.#deps.locks.runExclusive(id, async () => {
        try {
          if ((await this.#read(id)) === undefined) throw uploadGoneError();
          // There can be more than one if the server stopped between the rename and the removal below.
          const before = (await this.listParts(id)).filter((part) => part.number === number);
          const name = partFileName({ number, etag: arrived.md5 });
          await rename(arrived.path, join(this.#at(id), name));
          release(true);
          for (const part of before) {
            this.#deps.usage.adjust(-part.size);
            if (partFileName(part) !== name)
              await rm(join(this.#at(id), partFileName(part)), { force: true });
          }
          return { number, etag: arrived.md5, size: length, modifiedAt: Number(arrived.stats.mtimeMs) };
        } finally {
          await rm(arrived.path, { force: true });
        }
      });
    } finally {
      release(false);
    }
  }

  async #complete(
    { id, key, headers }: MultipartUpload,
    chosen: readonly Pick<UploadPart, 'number' | 'etag'>[],
    condition: WriteCondition,
  ): Promise<StoredObject> {
    if ((await this.#read(id)) === undefined) throw uploadGoneError();
    const uploaded = new Map((await this.listParts(id)).map((part) => [partFileName(part), part]));
    const parts = chosen.map((wanted) => {
      const part = uploaded.get(partFileName(wanted));
      if (part === undefined) throw ruleError(`part ${wanted.number} with this ETag was not uploaded`);
      return part;
    });
    const paths = parts.map((part) => join(this.#at(id), partFileName(part)));
    const arrived = await receiveFile(
      this.#deps.objects.temporaryPath(),
      readFiles(paths),
      parts.reduce((sum, { size }) => sum + size, 0),
    );
    const stored = await this.#deps.objects.commitFile(
      key,
      arrived,
      { etag: multipartEtag(parts), headers, checksums: {} },
      condition,
    );
    this.#deps.usage.adjust(stored.size);
    await this.#drop(id);
    return stored;
  }

  /** Deletes the description first, so that a partly deleted upload is not found again. */
  async #drop(id: string): Promise<void> {
    const size = (await this.listParts(id)).reduce((sum, part) => sum + part.size, 0);
    await rm(join(this.#at(id), UPLOAD_FILE), { force: true });
    await rm(this.#at(id), { recursive: true, force: true });
    this.#deps.usage.adjust(-size);
  }

  async #sweep(): Promise<void> {
    const now = this.#deps.clock.now();
    for (const { id, startedAt } of await this.list())
      if (now - startedAt > UPLOAD_TTL_MS) await this.#deps.locks.runExclusive(id, () => this.#drop(id));
    const arriving = join(this.#deps.directory.statePath, 'arriving');
    for (const name of await this.#names(arriving)) {
      const found = await stat(join(arriving, name)).catch(() => undefined);
      if (found !== undefined && now - found.mtimeMs > PARTIAL_FILE_TTL_MS)
        await rm(join(arriving, name), { force: true });
    }
  }

  async #read(id: string): Promise<MultipartUpload | undefined> {
    try {
      return JSON.parse(await readFile(join(this.#at(id), UPLOAD_FILE), 'utf8')) as MultipartUpload;
    } catch (error) {
      if (isMissingPathError(error)) return undefined;
      throw error;
    }
  }

  async #names(folder: string): Promise<string[]> {
    try {
      return await readdir(folder);
    } catch (error) {
      if (isMissingPathError(error)) return [];
      throw error;
    }
  }

  #at(id: string): string {
    return join(this.#folder, id);
  }
}

function uploadGoneError(): BerthError {
  return new BerthError('not-found', 'this upload was completed or aborted by another request');
}

/** As in S3: the MD5 of the parts' MD5s, and the number of parts. */
function multipartEtag(parts: readonly Pick<UploadPart, 'etag'>[]): string {
  const all = createHash('md5');
  for (const { etag } of parts) all.update(Buffer.from(etag, 'hex'));
  return `${all.digest('hex')}-${parts.length}`;
}

function partFileName({ number, etag }: Pick<UploadPart, 'number' | 'etag'>): string {
  return `${String(number).padStart(5, '0')}-${etag}`;
}

function parsePartFileName(name: string): Pick<UploadPart, 'number' | 'etag'> | undefined {
  const [, number, etag] = /^(\d{5})-([0-9a-f]{32})$/.exec(name) ?? [];
  return number === undefined || etag === undefined ? undefined : { number: Number(number), etag };
}

async function* readFiles(paths: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const path of paths) yield* createReadStream(path, { highWaterMark: 1024 ** 2 });
}
