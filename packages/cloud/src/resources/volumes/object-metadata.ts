import { createHash } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createDirectory } from './volume-directory.ts';
import { isMissingPathError } from './directory-handle.ts';

/** What a client said about an object, to be said again to whoever reads it. Names are lower-case header names. */
export type ObjectHeaders = Readonly<Record<string, string>>;

/** What is known of an object beyond its file. */
export interface ObjectMetadata {
  etag: string;
  headers: ObjectHeaders;
  /** Base64 by header name: x-amz-checksum-crc32 and its kin. */
  checksums: Readonly<Record<string, string>>;
}

/** Tells one state of a file from another, cheaply. */
interface FileFingerprint {
  size: string;
  mtime: string;
  inode: string;
}

type StoredMetadata = ObjectMetadata & FileFingerprint & { folderOnly?: true };

/**
 * Beside each volume, never in it: a card for each object that was written over S3, with its MD5
 * and its headers. A card counts only for the very file that it was written for, so a file that a
 * pod has changed since has none, and a card that is left behind says nothing wrong.
 */
export class ObjectMetadataStore {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async read(key: string, file: BigIntStats): Promise<ObjectMetadata | undefined> {
    const kept = await this.#kept(key);
    return kept !== undefined && matchesFingerprint(kept, file)
      ? { etag: kept.etag, headers: kept.headers, checksums: kept.checksums }
      : undefined;
  }

  /** Not brought to the disk at once: what a power cut takes away is made anew from the file. */
  async write(key: string, file: BigIntStats, card: ObjectMetadata): Promise<void> {
    await this.#write(key, { ...fingerprintOf(file), ...card });
  }

  /** This folder is there only because an object was put below it. */
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
    const kept = await this.#kept(key);
    return kept?.folderOnly === true && kept.inode === String(folder.ino);
  }

  async remove(key: string): Promise<void> {
    await rm(this.#path(key), { force: true });
  }

  async #write(key: string, kept: StoredMetadata): Promise<void> {
    const path = this.#path(key);
    for (const folder of [this.#folder, dirname(path)]) await createDirectory(folder);
    const fresh = `${path}.${process.pid}-${(temporaryFileCount += 1)}`;
    await writeFile(fresh, JSON.stringify(kept));
    await rename(fresh, path);
  }

  async #kept(key: string): Promise<StoredMetadata | undefined> {
    try {
      return JSON.parse(await readFile(this.#path(key), 'utf8')) as StoredMetadata;
    } catch (error) {
      // A card that was cut off by a power cut is as good as none.
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

/** Of a file that no card speaks of. Two parts, as those of multipart uploads have: nobody takes it for an MD5 of the content. */
export function derivedEtag(file: BigIntStats): string {
  const { size, mtime, inode } = fingerprintOf(file);
  return `${createHash('md5').update(`${size} ${mtime} ${inode}`).digest('hex')}-1`;
}

function fingerprintOf(file: BigIntStats): FileFingerprint {
  return { size: String(file.size), mtime: String(file.mtimeNs), inode: String(file.ino) };
}

function matchesFingerprint(kept: FileFingerprint, file: BigIntStats): boolean {
  const print = fingerprintOf(file);
  return kept.size === print.size && kept.mtime === print.mtime && kept.inode === print.inode;
}

/** A file of a volume, or a folder, as an object. */
export interface StoredObject extends ObjectMetadata {
  key: string;
  folder: boolean;
  size: number;
  modifiedAt: number;
}
