import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../../../support/clock.ts';
import { BerthError, notFound } from '../../../support/errors.ts';
import { randomIds } from '../../../support/ids.ts';
import { KeyedMutex } from '../../../support/keyed-mutex.ts';
import { MultipartUploads, type MultipartUpload, type UploadPart } from '../multipart-uploads.ts';
import type { ObjectListingQuery } from '../object-listing.ts';
import type { ObjectHeaders, ObjectMetadata, StoredObject } from '../object-metadata.ts';
import { receiveFile, type ReceivedFile } from '../receive-file.ts';
import { removeFolder } from '../remove-folder.ts';
import { VolumeDirectory } from '../volume-directory.ts';
import { type NewObject, type OpenObject, VolumeObjects, type WriteCondition } from '../volume-objects.ts';
import { VolumeUsageMeter } from '../volume-usage.ts';
import {
  type ArrivedFile,
  identityOf,
  isSameObject,
  type ObjectIdentity,
  type WriteAnswer,
} from './volume-protocol.ts';

/** A received file that is not committed by then is deleted. */
const ARRIVAL_TTL_MS = 600_000;

interface Arrival {
  file: ReceivedFile;
  release: (done: boolean) => void;
  timer: NodeJS.Timeout;
}

interface Commit {
  key: string;
  id: string;
  metadata: ObjectMetadata;
  expected: ObjectIdentity;
}

interface Completion {
  upload: MultipartUpload;
  chosen: UploadPart[];
  expected: ObjectIdentity;
}

/** Thrown inside of a write whose object is not the expected one. */
class ChangedError extends Error {
  readonly present: StoredObject | undefined;

  constructor(present: StoredObject | undefined) {
    super('the object was changed');
    this.present = present;
  }
}

/** What a volume server does for Berth servers, in the folder where its volume is mounted. */
export class VolumeServerCalls {
  readonly #directory: VolumeDirectory;
  readonly #usage: VolumeUsageMeter;
  readonly #locks = new KeyedMutex();
  /** One change of a key at a time, so that what was checked before holds. */
  readonly #changes = new KeyedMutex();
  readonly #arrivals = new Map<string, Arrival>();
  /** The size of the volume in bytes. */
  capacity = Number.POSITIVE_INFINITY;

  /** Instances mount the subfolder `data`; beside it is what only Berth sees. */
  constructor(folder: string) {
    const state = join(folder, 'berth');
    this.#directory = new VolumeDirectory({
      path: join(folder, 'data'),
      statePath: state,
      mode: 0o777,
      volumeExists: () => Promise.resolve(true),
    });
    this.#usage = new VolumeUsageMeter([this.#directory.path, join(state, 'uploads')]);
  }

  async call(name: string, parameters: unknown): Promise<unknown> {
    const calls: Readonly<Record<string, (parameters: never) => Promise<unknown>>> = {
      list: (query: ObjectListingQuery) => this.#objects.list(query),
      head: (key: string) => this.#objects.head(key),
      remove: (key: string) => this.#changes.runExclusive(key, () => this.#objects.remove(key)),
      'put-folder': ({ key, length }: { key: string; length: number }) =>
        this.#objects.put(key, { bytes: noBytes(), length, headers: {} }),
      commit: (commit: Commit) => this.#changes.runExclusive(commit.key, () => this.#commit(commit)),
      'remove-folder': (names: string[]) => this.#removeFolder(names),
      usage: () => this.#usage.current(),
      'create-upload': ({ key, headers, source }: { key: string; headers: ObjectHeaders; source?: string }) =>
        this.#uploads.create(key, headers, source),
      'find-upload': ({ id, key }: { id: string; key: string }) => this.#uploads.find(id, key),
      'list-uploads': () => this.#uploads.list(),
      'list-parts': (id: string) => this.#uploads.listParts(id),
      'complete-upload': (completion: Completion) =>
        this.#changes.runExclusive(completion.upload.key, () => this.#complete(completion)),
      'abort-upload': (upload: MultipartUpload) => this.#uploads.abort(upload),
    };
    const call = Object.hasOwn(calls, name) ? calls[name] : undefined;
    if (call === undefined) throw new BerthError('no-route', `a volume server has no call ${name}`);
    return call(parameters as never);
  }

  /** Receives the content of an object. It gets its name with `commit`. */
  async arrive(bytes: AsyncIterable<Uint8Array>, length: number, replaced: number): Promise<ArrivedFile> {
    const release = await this.#objects.reserve(length, replaced);
    try {
      const file = await this.#directory.runWrite(() =>
        receiveFile(this.#objects.temporaryPath(), bytes, length),
      );
      const id = randomIds.resource();
      const timer = setTimeout(() => void this.#forget(id), ARRIVAL_TTL_MS).unref();
      this.#arrivals.set(id, { file, release, timer });
      return { id, md5: file.md5 };
    } catch (error) {
      release(false);
      throw error;
    }
  }

  async #commit({ key, id, metadata, expected }: Commit): Promise<WriteAnswer> {
    const arrival = this.#arrivals.get(id);
    if (arrival === undefined) throw notFound('received file', id);
    // A refused commit would delete the file.
    const present = await this.#objects.head(key);
    if (!isSameObject(identityOf(present), expected)) return { changed: true, present: present ?? null };
    try {
      const stored = await this.#directory.runWrite(() =>
        this.#objects.commitFile(key, arrival.file, metadata, expects(expected)),
      );
      arrival.release(true);
      return { stored };
    } catch (error) {
      if (error instanceof ChangedError)
        throw new BerthError('unavailable', 'a pod changed the file meanwhile; try again');
      throw error;
    } finally {
      await this.#forget(id);
    }
  }

  async #complete({ upload, chosen, expected }: Completion): Promise<WriteAnswer> {
    try {
      return { stored: await this.#uploads.complete(upload, chosen, expects(expected)) };
    } catch (error) {
      if (error instanceof ChangedError) return { changed: true, present: error.present ?? null };
      throw error;
    }
  }

  async putPart(
    id: string,
    key: string,
    number: number,
    part: Pick<NewObject, 'bytes' | 'length'>,
  ): Promise<UploadPart> {
    const upload = await this.#uploads.find(id, key);
    if (upload === undefined) throw notFound('upload', id);
    return this.#uploads.putPart(upload, number, part);
  }

  /** The object, if it is still this one. */
  async open(key: string, identity: string): Promise<OpenObject> {
    const object = await this.#objects.open(key);
    if (object !== undefined && isSameObject(identityOf(object), JSON.parse(identity) as ObjectIdentity))
      return object;
    await object?.close();
    throw new BerthError('unavailable', 'the object was changed while it was read; try again');
  }

  get #objects(): VolumeObjects {
    return new VolumeObjects({
      directory: this.#directory,
      capacity: this.capacity,
      usage: this.#usage,
      locks: this.#locks,
      ids: randomIds,
    });
  }

  get #uploads(): MultipartUploads {
    return new MultipartUploads({
      objects: this.#objects,
      directory: this.#directory,
      usage: this.#usage,
      locks: this.#locks,
      clock: systemClock,
      ids: randomIds,
    });
  }

  async #removeFolder(names: readonly string[]): Promise<boolean> {
    const removed = await removeFolder(this.#directory.path, names);
    this.#usage.invalidate();
    return removed;
  }

  async #forget(id: string): Promise<void> {
    const arrival = this.#arrivals.get(id);
    if (arrival === undefined) return;
    this.#arrivals.delete(id);
    clearTimeout(arrival.timer);
    arrival.release(false);
    await rm(arrival.file.path, { force: true });
  }
}

function expects(expected: ObjectIdentity): WriteCondition {
  return (present) => {
    if (!isSameObject(identityOf(present), expected)) throw new ChangedError(present);
  };
}

async function* noBytes(): AsyncGenerator<Uint8Array> {}
