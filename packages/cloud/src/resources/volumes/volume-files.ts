import { Readable } from 'node:stream';
import type { Caller } from '../../domain/caller.ts';
import type { NetworkVolume } from '../../domain/records.ts';
import { BerthError, notFound } from '../../support/errors.ts';
import { auditEntry } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';
import { objectPath } from './object-key.ts';
import type { ObjectStore } from './volume-backend.ts';
import type { OpenObject } from './volume-objects.ts';
import type { VolumeContents } from './volume-contents.ts';
import type { Volumes } from './volumes.ts';

export interface VolumeFile {
  name: string;
  kind: 'file' | 'folder';
  /** In bytes; 0 for a folder. */
  size: number;
  /** Null for a folder. */
  modifiedAt: number | null;
}

export interface VolumeFilePage {
  files: VolumeFile[];
  /** The value of `after` for the next page; undefined on the last one. */
  next: string | undefined;
}

/** The files of network volumes as a file browser sees them: folder by folder. S3 shows the same files. */
export class VolumeFiles {
  readonly #context: ResourceContext;
  readonly #volumes: Volumes;
  readonly #contents: VolumeContents;

  constructor(context: ResourceContext, volumes: Volumes, contents: VolumeContents) {
    this.#context = context;
    this.#volumes = volumes;
    this.#contents = contents;
  }

  /** What is in a folder, by name. The empty path is the volume itself. */
  async list(
    caller: Caller,
    id: string,
    path: string,
    page: { limit: number; after: string },
  ): Promise<VolumeFilePage> {
    const objects = await this.#objects(caller, id);
    const folder = trimSlashes(path);
    const prefix = folder === '' ? '' : `${folder}/`;
    if (prefix !== '' && (await objects.head(prefix)) === undefined) throw notFound('folder', path);
    const listing = await objects.list({ prefix, delimiter: '/', ...page });
    const files = [
      ...listing.prefixes.map((key): VolumeFile => ({ ...FOLDER, name: key.slice(prefix.length, -1) })),
      // An empty folder is a key of its own.
      ...listing.objects
        .filter(({ key }) => key !== prefix)
        .map(({ key, size, modifiedAt, folder: isFolder }): VolumeFile => {
          const name = key.slice(prefix.length);
          return isFolder ? { ...FOLDER, name: trimSlashes(name) } : { name, kind: 'file', size, modifiedAt };
        }),
    ];
    return { files: files.sort(byName), next: listing.next };
  }

  /** The caller reads the file to its end, or closes it. */
  async open(caller: Caller, id: string, path: string): Promise<OpenObject> {
    const file = await (await this.#objects(caller, id)).open(trimSlashes(path));
    if (file === undefined) throw notFound('file', path);
    return file;
  }

  /** Folders on the way are made. A file that is there already is only replaced where that is wanted. */
  async write(
    caller: Caller,
    id: string,
    path: string,
    { content, length, replace }: { content: Readable; length: number; replace: boolean },
  ): Promise<VolumeFile> {
    const key = trimSlashes(path);
    const stored = await (await this.#objects(caller, id)).put(
      key,
      { bytes: content, length, headers: {} },
      (present) => {
        if (present !== undefined && !replace)
          throw new BerthError(
            'conflict',
            `there is a file ${JSON.stringify(key.slice(0, 80))} already; send replace=true to replace it`,
          );
      },
    );
    return { name: lastName(key), kind: 'file', size: stored.size, modifiedAt: stored.modifiedAt };
  }

  async createFolder(caller: Caller, id: string, path: string): Promise<VolumeFile> {
    const key = trimSlashes(path);
    const objects = await this.#objects(caller, id);
    if ((await objects.head(`${key}/`)) !== undefined)
      throw new BerthError('conflict', `there is a folder ${JSON.stringify(key.slice(0, 80))} already`);
    await objects.put(`${key}/`, { bytes: Readable.from([]), length: 0, headers: {} });
    return { ...FOLDER, name: lastName(key) };
  }

  /** A folder that is not empty is deleted only with `recursive`. */
  async remove(caller: Caller, id: string, path: string, recursive: boolean): Promise<void> {
    const volume = await this.#volumes.get(caller, id);
    const objects = this.#contents.objects(volume);
    const key = trimSlashes(path);
    if ((await objects.head(key)) !== undefined) await objects.remove(key);
    else {
      if ((await objects.head(`${key}/`)) === undefined) throw notFound('file', path);
      if (!recursive) await this.#checkEmpty(objects, key);
      await this.#contents.removeFolder(volume, objectPath(key).names);
    }
    const changes = [{ field: 'path', to: key }];
    await this.#context.store.audit.record(
      auditEntry(this.#context, caller, 'delete files of', 'network volume', id, changes),
    );
  }

  async #checkEmpty(objects: ObjectStore, key: string): Promise<void> {
    const { objects: files } = await objects.list({ prefix: `${key}/`, delimiter: '', after: '', limit: 2 });
    if (files.some((file) => file.key !== `${key}/`))
      throw new BerthError(
        'state',
        `the folder ${JSON.stringify(key.slice(0, 80))} is not empty; send recursive=true to delete it with its files`,
      );
  }

  async #objects(caller: Caller, id: string): Promise<ObjectStore> {
    const volume: NetworkVolume = await this.#volumes.get(caller, id);
    return this.#contents.objects(volume);
  }
}

const FOLDER = { kind: 'folder', size: 0, modifiedAt: null } as const;

function trimSlashes(path: string): string {
  return path.replace(/^\/+|\/+$/g, '');
}

function lastName(key: string): string {
  return key.slice(key.lastIndexOf('/') + 1);
}

function byName(one: VolumeFile, other: VolumeFile): number {
  return one.name < other.name ? -1 : one.name > other.name ? 1 : 0;
}
