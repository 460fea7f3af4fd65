import { createHash } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createDirectory } from './volume-directory.ts';
import { isMissingPathError } from '../../support/directory-handle.ts';

/**
 * Headers that a client stored with an object and that are returned when it is read. Names are in lower case.
 */
export type ObjectHeaders = Readonly<Record<string, string>>;

/** Metadata of an object that is not part of its file. */
export interface ObjectMetadata {
  etag: string;
  headers: ObjectHeaders;
  /** Base64 by header name, such as x-amz-checksum-crc32. */
  checksums: Readonly<Record<string, string>>;
}

/** Detects cheaply whether a file has changed. */
interface FileFingerprint {
  size: string;
  mtime: string;
  inode: string;
}

type StoredMetadata = ObjectMetadata & FileFingerprint & { folderOnly?: true };

/**
 * Stores metadata (MD5 and headers) of objects that were written over S3, in a directory beside the volume.
 * An entry is valid only for the exact file that it was written for: if a pod changes the file, the entry is
 * ignored, and an entry that is left behind does no harm.
 */
export class ObjectMetadataStore {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async read(key: string, file: BigIntStats): Promise<ObjectMetadata | undefined> {
    const stored = await this.#read(key);
    return stored !== undefined && matchesFingerprint(stored, file)
      ? { etag: stored.etag, headers: stored.headers, checksums: stored.checksums }
      : undefined;
  }

  /** Not synced: metadata that is lost in a power failure is derived from the file again. */
  async write(key: string, file: BigIntStats, metadata: ObjectMetadata): Promise<void> {
    await this.#write(key, { ...fingerprintOf(file), ...metadata });
  }

  /** Records that a directory exists only because an object was stored below it. */
  async markImplicitDirectory(key: string, folder: BigIntStats): Promise<void> {
    await this.#write(key, {
      ...fingerprintOf(folder),
      etag: '',
      headers: {},
      checksums: {},
      folderOnly: true,
    });
  }

  async isImplicitDirectory(key: string, folder: BigIntStats): Promise<boolean> {
    const stored = await this.#read(key);
    return stored?.folderOnly === true && stored.inode === String(folder.ino);
  }

  async remove(key: string): Promise<void> {
    await rm(this.#path(key), { force: true });
  }

  async #write(key: string, stored: StoredMetadata): Promise<void> {
    const path = this.#path(key);
    for (const folder of [this.#folder, dirname(path)]) await createDirectory(folder);
    const temporaryPath = `${path}.${process.pid}-${(temporaryFileCount += 1)}`;
    await writeFile(temporaryPath, JSON.stringify(stored));
    await rename(temporaryPath, path);
  }

  async #read(key: string): Promise<StoredMetadata | undefined> {
    try {
      return JSON.parse(await readFile(this.#path(key), 'utf8')) as StoredMetadata;
    } catch (error) {
      // An entry that was cut off by a power failure counts as missing.
      if (isMissingPathError(error) || error instanceof SyntaxError) return undefined;
      throw error;
    }
  }

  #path(key: string): string {
    const name = createHash('sha256').update(key).digest('hex');
    return join(this.#folder, name.slice(0, 2), name);
  }
}

let temporaryFileCount = 0;

/**
 * The ETag of a file without metadata. It has two parts, as for multipart uploads, so that no client takes it
 * for the MD5 of the content.
 */
export function derivedEtag(file: BigIntStats): string {
  const { size, mtime, inode } = fingerprintOf(file);
  return `${createHash('md5').update(`${size} ${mtime} ${inode}`).digest('hex')}-1`;
}

function fingerprintOf(file: BigIntStats): FileFingerprint {
  return { size: String(file.size), mtime: String(file.mtimeNs), inode: String(file.ino) };
}

function matchesFingerprint(stored: FileFingerprint, file: BigIntStats): boolean {
  const current = fingerprintOf(file);
  return stored.size === current.size && stored.mtime === current.mtime && stored.inode === current.inode;
}

/** A file or a directory of a volume, as an object. */
export interface StoredObject extends ObjectMetadata {
  key: string;
  folder: boolean;
  size: number;
  modifiedAt: number;
}
