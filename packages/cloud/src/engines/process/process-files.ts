import { posix } from 'node:path';
import { Readable } from 'node:stream';
import { type EntryLocation, lstatIfExists, openParentDirectory } from '../../support/directory-handle.ts';
import { BerthError, notFound, ruleError } from '../../support/errors.ts';
import type { InstanceFile, InstanceFiles } from '../instance-files.ts';
import { locateInInstance } from './instance-paths.ts';
import type { ProcessInstance } from './process-instance.ts';

/**
 * The files below an instance's root: its working folder and its mounts. Absolute paths are resolved below
 * the root too, so the host's own files cannot be copied. Berth may read what the instance may not, so no
 * symbolic link is followed, even if the instance puts it there while a copy runs.
 */
export class ProcessFiles implements InstanceFiles {
  readonly #instance: (id: string) => Promise<ProcessInstance>;

  constructor(instance: (id: string) => Promise<ProcessInstance>) {
    this.#instance = instance;
  }

  async stat(id: string, path: string): Promise<InstanceFile | undefined> {
    const instance = await this.#running(id);
    const location = await this.#open(instance, path);
    if (location === undefined) return undefined;
    try {
      const found = await lstatIfExists(location.directory.pathOf(location.name));
      if (found === undefined) return undefined;
      return {
        kind: found.isFile() ? 'file' : found.isDirectory() ? 'folder' : 'other',
        size: found.isFile() ? Number(found.size) : 0,
        mode: Number(found.mode) & 0o7777,
        modifiedAt: Number(found.mtimeMs),
      };
    } finally {
      await location.directory.close();
    }
  }

  async read(id: string, path: string): Promise<Readable> {
    const instance = await this.#running(id);
    const location = await this.#open(instance, path);
    if (location === undefined) throw notFound('file', path);
    const { directory, name } = location;
    try {
      if ((await lstatIfExists(directory.pathOf(name))) === undefined) throw notFound('file', path);
    } catch (error) {
      await directory.close();
      throw error;
    }
    return Readable.from(packLocation(location, posix.basename(posix.join('/root', path)), instance), {
      objectMode: false,
    });
  }

  async write(id: string, folder: string, tar: Readable): Promise<void> {
    const instance = await this.#running(id);
    const base = namesOf(folder);
    if ((await this.stat(id, folder))?.kind !== 'folder') throw notFound('folder', folder);
    const [{ TarError }, { unpackTar }] = await Promise.all([
      import('../../support/tar/tar-read.ts'),
      import('../../support/tar/tar-unpack.ts'),
    ]);
    try {
      await unpackTar(instance.folder.root, tar.iterator({ destroyOnReturn: false }), {
        owner: instance.saved.user,
        locate: (names) => locateInInstance([...base, ...names], instance.folder.root, instance.saved.mounts),
      });
    } catch (error) {
      if (error instanceof TarError) throw ruleError(error.message);
      throw asRuleError(error);
    }
  }

  async #running(id: string): Promise<ProcessInstance> {
    const instance = await this.#instance(id);
    if (!instance.isRunning) throw new BerthError('state', `${id} does not run`);
    return instance;
  }

  /** The open folder that holds the entry at a path; undefined if there is none without links. */
  async #open({ folder, saved }: ProcessInstance, path: string): Promise<EntryLocation | undefined> {
    const { root, names } = locateInInstance(namesOf(path), folder.root, saved.mounts);
    try {
      // The root itself is an entry of Berth's folder.
      return await openParentDirectory(posix.dirname(root), [posix.basename(root), ...names]);
    } catch (error) {
      throw asRuleError(error);
    }
  }
}

async function* packLocation(
  { directory, name }: EntryLocation,
  as: string,
  { saved }: ProcessInstance,
): AsyncGenerator<Uint8Array> {
  try {
    // Loaded at the first copy to keep the server start fast.
    const { packEntry } = await import('../../support/tar/tar-pack.ts');
    yield* packEntry(directory, name, as, { ownerUid: saved.user?.uid });
  } finally {
    await directory.close();
  }
}

function namesOf(path: string): string[] {
  return posix
    .normalize(`/${path}`)
    .split('/')
    .filter((name) => name !== '');
}

/** Errors of the file system are reported to the caller, not treated as internal errors. */
function asRuleError(error: unknown): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === undefined || code.startsWith('ERR_')
    ? error
    : ruleError(`this cannot be copied: ${message.replace(/, \w+ '.*$/, '')}`);
}
