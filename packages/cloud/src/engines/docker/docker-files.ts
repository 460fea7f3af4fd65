import { posix } from 'node:path';
import type { Readable } from 'node:stream';
import { BerthError, notFound, ruleError } from '../../support/errors.ts';
import type { InstanceFile, InstanceFiles } from '../instance-files.ts';
import type { DockerClient } from './client/docker-client.ts';
import type { InspectedContainer, PathStat } from './client/docker-objects.ts';
import type { Daemon } from './daemon.ts';
import { toDockerError, isNotFound, daemonStatus, daemonMessage } from './client/docker.errors.ts';

const FOLDER_MODE_BIT = 2 ** 31;
const LINK_MODE_BIT = 2 ** 27;
/** The longest chain of links to follow. */
const MAX_LINKS = 10;

export interface DockerFilesDeps {
  daemon: Daemon;
  /** The container of a running instance; rejects if it does not run. */
  containerId(id: string): Promise<string>;
}

/** The container whose files are asked for. */
interface Target {
  client: DockerClient;
  /** Its path in the API. */
  container: string;
}

/**
 * The files of containers, through the daemon's archive API: it sees mounts and changes as the container
 * does.
 */
export class DockerFiles implements InstanceFiles {
  readonly #deps: DockerFilesDeps;

  constructor(deps: DockerFilesDeps) {
    this.#deps = deps;
  }

  async stat(id: string, path: string): Promise<InstanceFile | undefined> {
    const target = await this.#target(id);
    let resolved = await this.#resolvePath(target, path);
    for (let links = 0; links < MAX_LINKS; links += 1) {
      const found = await this.#stat(target, resolved);
      if (found === undefined) return undefined;
      if ((found.mode & LINK_MODE_BIT) === 0 || found.linkTarget === '')
        return {
          kind: found.mode >= FOLDER_MODE_BIT ? 'folder' : found.mode < 2 ** 16 ? 'file' : 'other',
          size: found.mode >= FOLDER_MODE_BIT ? 0 : found.size,
          mode: found.mode & 0o777,
          modifiedAt: Date.parse(found.mtime),
        };
      resolved = posix.resolve(posix.dirname(resolved), found.linkTarget);
    }
    return undefined;
  }

  async read(id: string, path: string): Promise<Readable> {
    const target = await this.#target(id);
    const resolved = await this.#resolvePath(target, path);
    try {
      // Follow a link to a folder instead of packing the link.
      const real = (await this.stat(id, resolved))?.kind === 'folder' ? `${resolved}/` : resolved;
      return await target.client.stream('GET', `${target.container}/archive`, { query: { path: real } });
    } catch (error) {
      throw isNotFound(error) ? notFound('file', path) : asDockerError(error);
    }
  }

  async write(id: string, folder: string, tar: Readable): Promise<void> {
    const target = await this.#target(id);
    const path = await this.#resolvePath(target, folder);
    const aborted = new AbortController();
    // The sender may disconnect early; the daemon would wait for the rest.
    const onClose = (): void => {
      if (!tar.readableEnded) aborted.abort(new Error('the archive ended early'));
    };
    tar.once('close', onClose).once('error', onClose);
    try {
      const request = { query: { path }, upload: tar, signal: aborted.signal };
      (await target.client.stream('PUT', `${target.container}/archive`, request)).resume();
    } catch (error) {
      if (aborted.signal.aborted) throw ruleError('the archive ended early');
      if (isNotFound(error)) throw notFound('folder', folder);
      throw daemonStatus(error) === 400 ||
        /tar|archive|unexpected EOF|no such file|not a directory|exists/i.test(daemonMessage(error))
        ? ruleError(`this cannot be copied: ${daemonMessage(error)}`)
        : asDockerError(error);
    } finally {
      tar.off('close', onClose).off('error', onClose);
    }
  }

  async #stat({ client, container }: Target, path: string): Promise<PathStat | undefined> {
    try {
      const headers = await client.head(`${container}/archive`, { path });
      const stat = headers['x-docker-container-path-stat'];
      return JSON.parse(Buffer.from(String(stat), 'base64').toString('utf8')) as PathStat;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw asDockerError(error);
    }
  }

  async #target(id: string): Promise<Target> {
    const client = await this.#deps.daemon.client();
    return { client, container: `/containers/${await this.#deps.containerId(id)}` };
  }

  async #resolvePath({ container }: Target, path: string): Promise<string> {
    if (path.startsWith('/')) return posix.normalize(path);
    const { Config: config } = await this.#deps.daemon.call((client) =>
      client.get<InspectedContainer>(`${container}/json`),
    );
    return posix.join(config.WorkingDir || '/', path);
  }
}

function asDockerError(error: unknown): BerthError {
  return error instanceof BerthError ? error : toDockerError(error);
}
