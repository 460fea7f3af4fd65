import { createGunzip, gzipSync } from 'node:zlib';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { pipeline, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { ImageArchiveKey, ImageArchiveStore } from '../../store/image-archive-store.ts';
import type { Ids } from '../../support/ids.ts';
import type { Bucket } from '../object-storage/bucket.ts';
import type { ImageSnapshots, Snapshot, SnapshotMetadata } from './image-snapshots.ts';

/** Of one row, before base64. */
const PART_BYTES = 3 * 1024 ** 2;
/** Wake-ups may be lost. */
const SYNC_INTERVAL_MS = 30_000;

export interface SharedImagesDeps {
  archives: ImageArchiveStore;
  /** Where the files of archives go. Without one, they are in the database too. */
  bucket?: Bucket | undefined;
  snapshots: ImageSnapshots;
  ids: Ids;
  onProblem: (what: string, error: unknown) => void;
}

/**
 * Deployed folders of several servers. The database has all of them, or knows that their files are in the
 * bucket, and each server has a copy on its disk, since programs run from there. A mark beside the copy says that the database had it: a copy with the mark
 * that the database no longer has was deleted on another server.
 */
export class SharedImages {
  readonly #deps: SharedImagesDeps;
  #syncing: Promise<void> | undefined;
  #again = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(deps: SharedImagesDeps) {
    this.#deps = deps;
  }

  start(): void {
    void this.sync();
    this.#timer = setInterval(() => void this.sync(), SYNC_INTERVAL_MS).unref();
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#again = false;
    await this.#syncing;
  }

  /** Called when a snapshot was written here. Other servers can run it after that. */
  async publish(name: string, { digest, ...metadata }: Snapshot): Promise<void> {
    const { archives, bucket, snapshots } = this.#deps;
    const { packTree } = await import('../../support/tar/tar-pack.ts');
    const packed = gzipSync(await buffer(packTree(snapshots.folderOf(name, digest), '.')));
    const parts: string[] = [];
    if (bucket !== undefined) await bucket.add(objectOf({ name, digest }), packed);
    else
      for (let from = 0; from < packed.length; from += PART_BYTES)
        parts.push(packed.subarray(from, from + PART_BYTES).toString('base64'));
    await archives.insert(
      { name, digest },
      { metadata: JSON.stringify(metadata), createdAt: metadata.createdAt, parts },
    );
    await this.#mark({ name, digest });
  }

  async remove(key: ImageArchiveKey): Promise<void> {
    await this.#deps.archives.remove(key);
    await this.#deps.bucket
      ?.remove(objectOf(key))
      .catch((error: unknown) =>
        this.#deps.onProblem(`${key.name}:${key.digest} could not be deleted from the bucket`, error),
      );
  }

  /** Makes the disk of this server like the database. Calls while one runs are one more run. */
  sync(): Promise<void> {
    if (this.#syncing !== undefined) {
      this.#again = true;
      return this.#syncing;
    }
    this.#syncing = this.#syncUntilDone().finally(() => (this.#syncing = undefined));
    return this.#syncing;
  }

  async #syncUntilDone(): Promise<void> {
    do {
      this.#again = false;
      try {
        await this.#sync();
      } catch (error) {
        this.#deps.onProblem('deployed folders of other servers could not be read', error);
      }
    } while (this.#again);
  }

  async #sync(): Promise<void> {
    const { archives, snapshots, ids } = this.#deps;
    const shared = new Map((await archives.list()).map((key) => [`${key.name}:${key.digest}`, key]));
    for (const name of await snapshots.names())
      for (const snapshot of await snapshots.list(name)) {
        const key = { name, digest: snapshot.digest };
        if (shared.delete(`${name}:${snapshot.digest}`)) await this.#mark(key);
        // Of a time when this was the only server.
        else if (!existsSync(this.#markOf(key))) await this.publish(name, snapshot);
        else await snapshots.remove(name, snapshot.digest, ids.resource());
      }
    // One that cannot be read does not keep the others back.
    for (const key of shared.values())
      await this.#fetch(key).catch((error: unknown) =>
        this.#deps.onProblem(`the deployed folder ${key.name}:${key.digest} could not be read`, error),
      );
  }

  async #fetch(key: ImageArchiveKey): Promise<void> {
    const { archives, snapshots, ids } = this.#deps;
    const found = await archives.find(key);
    if (found === undefined) return;
    const metadata = JSON.parse(found.metadata) as SnapshotMetadata;
    const packed = found.parts > 0 ? this.#readParts(key, found.parts) : await this.#openInBucket(key);
    // The reader of the archive meets the error of either.
    const archive = pipeline(packed, createGunzip(), () => undefined);
    await snapshots.writeArchive(key.name, key.digest, archive, metadata, ids.resource());
    await this.#mark(key);
  }

  #readParts(key: ImageArchiveKey, parts: number): Readable {
    const { archives } = this.#deps;
    const read = async function* (): AsyncGenerator<Buffer> {
      for (let part = 0; part < parts; part += 1)
        yield Buffer.from((await archives.part(key, part)) ?? '', 'base64');
    };
    return Readable.from(read());
  }

  #openInBucket(key: ImageArchiveKey): Promise<Readable> {
    const { bucket } = this.#deps;
    if (bucket === undefined)
      throw new Error('its files are in an S3 bucket, and images.bucket is not set on this server');
    return bucket.open(objectOf(key));
  }

  async #mark(key: ImageArchiveKey): Promise<void> {
    if (!existsSync(this.#markOf(key))) await writeFile(this.#markOf(key), '', { mode: 0o600 });
  }

  #markOf({ name, digest }: ImageArchiveKey): string {
    return `${this.#deps.snapshots.folderOf(name, digest)}.shared`;
  }
}

function objectOf({ name, digest }: ImageArchiveKey): string {
  return `${name}/${digest}.tar.gz`;
}
