import type { Readable } from 'node:stream';
import type { Caller } from '../../domain/caller.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';
import type { InstanceEngine } from '../../engines/engine.ts';
import type { InstanceFile, InstanceFiles } from '../../engines/instance-files.ts';
import { BerthError, notFound } from '../../support/errors.ts';
import { auditEntry } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';

/** Copies files into and out of running pods. */
export class PodFiles {
  readonly #context: ResourceContext;
  readonly #engines: ReadonlyMap<string, InstanceEngine>;
  readonly #find: (caller: Caller, podId: string) => Promise<Pod>;

  /** `find` throws where the caller may not use the pod. */
  constructor(
    context: ResourceContext,
    engines: ReadonlyMap<string, InstanceEngine>,
    find: (caller: Caller, podId: string) => Promise<Pod>,
  ) {
    this.#context = context;
    this.#engines = engines;
    this.#find = find;
  }

  /** Describes the file or directory at a path. */
  async stat(caller: Caller, podId: string, path: string): Promise<InstanceFile> {
    const pod = await this.#find(caller, podId);
    const found = await filesOf(pod, this.#engines).stat(podId, path);
    if (found === undefined) throw notFound('file', path);
    return found;
  }

  /** A tar archive of the file or directory at a path. */
  async read(caller: Caller, podId: string, path: string): Promise<Readable> {
    const pod = await this.#find(caller, podId);
    return filesOf(pod, this.#engines).read(podId, path);
  }

  /** Unpacks a tar archive into a directory. */
  async write(caller: Caller, podId: string, folder: string, tar: Readable): Promise<void> {
    const pod = await this.#find(caller, podId);
    await filesOf(pod, this.#engines).write(podId, folder, tar);
    await this.#context.store.audit.record(
      auditEntry(this.#context, caller, 'copy files into', 'pod', podId, [{ field: 'path', to: folder }]),
    );
  }
}

/** File access to a running pod. A stopped pod has only its volumes, which are reached in other ways. */
function filesOf(
  { id, status, dataCenterId }: Pod,
  engines: ReadonlyMap<string, InstanceEngine>,
): InstanceFiles {
  if (status !== 'RUNNING')
    throw new BerthError(
      'state',
      `pod ${id} is not running: start it to copy files; files of a network volume can be copied at ` +
        'any time with "berth volume cp"',
    );
  const files = engines.get(dataCenterId)?.files;
  if (files === undefined)
    throw new BerthError('state', `files cannot be copied into pods of data center ${dataCenterId}`);
  return files;
}
