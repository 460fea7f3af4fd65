import { posix } from 'node:path';
import { Readable } from 'node:stream';
import { notFound, ruleError } from '../../support/errors.ts';
import type { InstanceFile, InstanceFiles } from '../instance-files.ts';
import type { KubernetesInstance } from './kubernetes-instance.ts';

const MS_PER_SECOND = 1000;
const NO_TAR = /"?tar"?.*not found/;

/** The files of pods, through `stat` and `tar` of their image, as `kubectl cp` does. */
export class PodFiles implements InstanceFiles {
  readonly #instance: (id: string) => Promise<KubernetesInstance>;

  /** `instance` rejects if there is none. */
  constructor(instance: (id: string) => Promise<KubernetesInstance>) {
    this.#instance = instance;
  }

  async stat(id: string, path: string): Promise<InstanceFile | undefined> {
    const instance = await this.#instance(id);
    const { exitCode, stdout } = await instance.run(['stat', '-L', '-c', '%f %s %Y', '--', path]);
    if (exitCode !== 0) return undefined;
    const [mode = '', size, modified] = stdout.toString('utf8').trim().split(' ');
    const bits = Number.parseInt(mode, 16);
    const kind = ({ 0o040000: 'folder', 0o100000: 'file' } as const)[bits & 0o170000] ?? 'other';
    return {
      kind,
      size: kind === 'folder' ? 0 : Number(size),
      mode: bits & 0o777,
      modifiedAt: Number(modified) * MS_PER_SECOND,
    };
  }

  async read(id: string, path: string): Promise<Readable> {
    const found = await this.stat(id, path);
    if (found === undefined) throw notFound('file', path);
    const instance = await this.#instance(id);
    // A link to a folder is followed; the entry keeps the name that was asked for.
    const folder =
      posix.dirname(posix.join('/', path)) === '/' && !path.startsWith('/') ? '.' : posix.dirname(path);
    const name = posix.basename(path);
    const execution = await instance.exec(['tar', '-cf', '-', '-C', folder, '-H', 'ustar', '--', name], {});
    execution.stdin.end();
    execution.stderr.resume();
    return Readable.from(execution.stdout as AsyncIterable<Buffer>, { objectMode: false });
  }

  async write(id: string, folder: string, tar: Readable): Promise<void> {
    const instance = await this.#instance(id);
    await instance.run(['mkdir', '-p', '--', folder]);
    const { exitCode, stderr } = await instance.run(['tar', '-xf', '-', '-C', folder], tar);
    if (exitCode === 0) return;
    throw ruleError(
      NO_TAR.test(stderr)
        ? 'files cannot be copied: the image has no tar'
        : `this cannot be copied: ${stderr.trim().split('\n').at(-1) ?? ''}`,
    );
  }
}
