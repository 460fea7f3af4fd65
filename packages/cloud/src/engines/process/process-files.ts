import { stat } from 'node:fs/promises';
import { basename, join, posix } from 'node:path';
import { Readable } from 'node:stream';
import { BerthError, notFound, ruleError } from '../../support/errors.ts';
import type { InstanceFile, InstanceFiles } from '../instance-files.ts';
import type { ProcessInstance } from './process-instance.ts';

/**
 * The files below an instance's root: its working folder and its mounts, which are links there. Absolute
 * paths are resolved below the root too, so the host's own files cannot be copied.
 */
export class ProcessFiles implements InstanceFiles {
  readonly #instance: (id: string) => Promise<ProcessInstance>;

  constructor(instance: (id: string) => Promise<ProcessInstance>) {
    this.#instance = instance;
  }

  async stat(id: string, path: string): Promise<InstanceFile | undefined> {
    const found = await statIfThere(await this.#resolvePath(id, path));
    if (found === undefined) return undefined;
    return {
      kind: found.isFile() ? 'file' : found.isDirectory() ? 'folder' : 'other',
      size: found.isFile() ? found.size : 0,
      mode: found.mode & 0o7777,
      modifiedAt: found.mtimeMs,
    };
  }

  async read(id: string, path: string): Promise<Readable> {
    const hostPath = await this.#resolvePath(id, path);
    if ((await statIfThere(hostPath)) === undefined) throw notFound('file', path);
    // Loaded at the first copy to keep the server start fast.
    const { packTree } = await import('../../support/tar/tar-pack.ts');
    // A mount is a link: pack what it points to.
    return Readable.from(
      packTree(
        (await statIfThere(hostPath))?.isDirectory() === true ? `${hostPath}/.` : hostPath,
        basename(hostPath),
      ),
      { objectMode: false },
    );
  }

  async write(id: string, folder: string, tar: Readable): Promise<void> {
    const hostPath = await this.#resolvePath(id, folder);
    if ((await statIfThere(hostPath))?.isDirectory() !== true) throw notFound('folder', folder);
    const [{ TarError }, { unpackTar }] = await Promise.all([
      import('../../support/tar/tar-read.ts'),
      import('../../support/tar/tar-unpack.ts'),
    ]);
    try {
      await unpackTar(hostPath, tar.iterator({ destroyOnReturn: false }));
    } catch (error) {
      if (error instanceof TarError) throw ruleError(error.message);
      throw asRuleError(error);
    }
  }

  async #resolvePath(id: string, path: string): Promise<string> {
    const instance = await this.#instance(id);
    if (!instance.isRunning) throw new BerthError('state', `${id} does not run`);
    return join(instance.folder.root, posix.normalize(`/${path}`));
  }
}

async function statIfThere(path: string) {
  try {
    return await stat(path);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG'].includes((error as NodeJS.ErrnoException).code ?? ''))
      return undefined;
    throw asRuleError(error);
  }
}

/** Errors of the file system are reported to the caller, not treated as internal errors. */
function asRuleError(error: unknown): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === undefined || code.startsWith('ERR_')
    ? error
    : ruleError(`this cannot be copied: ${message.replace(/, \w+ '.*$/, '')}`);
}
