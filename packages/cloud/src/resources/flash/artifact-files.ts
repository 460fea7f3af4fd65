import { createWriteStream } from 'node:fs';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { SharedFiles } from '../shared-files/shared-files.ts';

/** Where the files of builds are, by their object keys. */
export interface ArtifactFiles {
  /** The file appears only when it is complete. `nonce` keeps two uploads of one key apart. */
  put(objectKey: string, content: AsyncIterable<Buffer>, nonce: string): Promise<void>;
  size(objectKey: string): Promise<number | undefined>;
  /** Its path on this machine; undefined if there is none. */
  file(objectKey: string): Promise<string | undefined>;
  removeAll(prefix: string): Promise<void>;
}

/** On the disk of the one server. */
export class LocalArtifactFiles implements ArtifactFiles {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  put(objectKey: string, content: AsyncIterable<Buffer>, nonce: string): Promise<void> {
    const file = this.#path(objectKey);
    return writeThen(`${file}.${nonce}.part`, content, (part) => rename(part, file));
  }

  async size(objectKey: string): Promise<number | undefined> {
    return (await stat(this.#path(objectKey)).catch(() => undefined))?.size;
  }

  async file(objectKey: string): Promise<string | undefined> {
    return (await this.size(objectKey)) === undefined ? undefined : this.#path(objectKey);
  }

  async removeAll(prefix: string): Promise<void> {
    await rm(this.#path(prefix), { recursive: true, force: true });
  }

  #path(objectKey: string): string {
    return join(this.#folder, objectKey);
  }
}

/** Where every server of an installation reaches them. */
export class SharedArtifactFiles implements ArtifactFiles {
  readonly #folder: string;
  readonly #shared: SharedFiles;

  constructor(folder: string, shared: SharedFiles) {
    this.#folder = folder;
    this.#shared = shared;
  }

  /** Shares what is on this server's disk alone, of a time when files were kept there. */
  async shareLocal(): Promise<void> {
    const found = await readdir(this.#folder, { recursive: true }).catch(() => []);
    for (const objectKey of found.filter((name) => name.endsWith('.tar.gz')))
      await this.#shared.add(objectKey, join(this.#folder, objectKey));
  }

  put(objectKey: string, content: AsyncIterable<Buffer>, nonce: string): Promise<void> {
    const part = join(this.#folder, `${objectKey}.${nonce}.part`);
    return writeThen(part, content, () => this.#shared.add(objectKey, part));
  }

  size(objectKey: string): Promise<number | undefined> {
    return this.#shared.size(objectKey);
  }

  file(objectKey: string): Promise<string | undefined> {
    return this.#shared.file(objectKey);
  }

  async removeAll(prefix: string): Promise<void> {
    await this.#shared.removeAll(`${prefix}/`);
    await rm(join(this.#folder, prefix), { recursive: true, force: true });
  }
}

async function writeThen(
  part: string,
  content: AsyncIterable<Buffer>,
  next: (part: string) => Promise<void>,
): Promise<void> {
  await mkdir(dirname(part), { recursive: true });
  try {
    await pipeline(content, createWriteStream(part));
    await next(part);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}
