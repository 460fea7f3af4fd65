import { posix } from 'node:path';
import type { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { BerthError, notFound, ruleError } from '../../support/errors.ts';
import type { InstanceFile, InstanceFiles } from '../instance-files.ts';
import type { Daemon } from './daemon.ts';
import { toDockerError, isNotFound, daemonStatus, daemonMessage } from './docker.errors.ts';

const FOLDER_MODE_BIT = 2 ** 31;
const LINK_MODE_BIT = 2 ** 27;
/** Links that lead to links. */
const MAX_LINKS = 10;

export interface DockerFilesDeps {
  daemon: Daemon;
  /** The container that runs under this id; rejects where none does. */
  containerId(id: string): Promise<string>;
}

interface PathStat {
  name: string;
  size: number;
  mode: number;
  mtime: string;
  linkTarget: string;
}

/** The files of containers, by the daemon's own archives: it sees mounts as the container does, and what the container has changed. */
export class DockerFiles implements InstanceFiles {
  readonly #deps: DockerFilesDeps;

  constructor(deps: DockerFilesDeps) {
    this.#deps = deps;
  }

  async stat(id: string, path: string): Promise<InstanceFile | undefined> {
    const container = await this.#container(id);
    let place = await this.#resolvePath(container, path);
    for (let links = 0; links < MAX_LINKS; links += 1) {
      const found = await this.#stat(container, place);
      if (found === undefined) return undefined;
      if ((found.mode & LINK_MODE_BIT) === 0 || found.linkTarget === '')
        return {
          kind: found.mode >= FOLDER_MODE_BIT ? 'folder' : found.mode < 2 ** 16 ? 'file' : 'other',
          size: found.mode >= FOLDER_MODE_BIT ? 0 : found.size,
          mode: found.mode & 0o777,
          modifiedAt: Date.parse(found.mtime),
        };
      place = posix.resolve(posix.dirname(place), found.linkTarget);
    }
    return undefined;
  }

  async read(id: string, path: string): Promise<Readable> {
    const container = await this.#container(id);
    const place = await this.#resolvePath(container, path);
    try {
      // A folder behind a link is wanted, and not the link.
      const real = (await this.stat(id, place))?.kind === 'folder' ? `${place}/` : place;
      return (await container.getArchive({ path: real })) as unknown as Readable;
    } catch (error) {
      throw isNotFound(error) ? notFound('file', path) : asDockerError(error);
    }
  }

  async write(id: string, folder: string, tar: Readable): Promise<void> {
    const container = await this.#container(id);
    const path = await this.#resolvePath(container, folder);
    const broken = new AbortController();
    // Whoever sends may go away in the middle; the daemon would wait for the rest.
    const watch = (): void => {
      if (!tar.readableEnded) broken.abort(new Error('the archive ended early'));
    };
    tar.once('close', watch).once('error', watch);
    try {
      await container.putArchive(tar, { path, abortSignal: broken.signal });
    } catch (error) {
      if (broken.signal.aborted) throw ruleError('the archive ended early');
      if (isNotFound(error)) throw notFound('folder', folder);
      throw daemonStatus(error) === 400 ||
        /tar|archive|unexpected EOF|no such file|not a directory|exists/i.test(daemonMessage(error))
        ? ruleError(`this cannot be copied: ${daemonMessage(error)}`)
        : asDockerError(error);
    } finally {
      tar.off('close', watch).off('error', watch);
    }
  }

  async #stat(container: Docker.Container, path: string): Promise<PathStat | undefined> {
    try {
      const answer = (await container.infoArchive({ path })) as unknown as Readable & {
        headers: Record<string, string>;
      };
      answer.resume();
      return JSON.parse(
        Buffer.from(answer.headers['x-docker-container-path-stat'] ?? '', 'base64').toString('utf8'),
      ) as PathStat;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw asDockerError(error);
    }
  }

  async #container(id: string): Promise<Docker.Container> {
    return (await this.#deps.daemon.client()).getContainer(await this.#deps.containerId(id));
  }

  async #resolvePath(container: Docker.Container, path: string): Promise<string> {
    if (path.startsWith('/')) return posix.normalize(path);
    const { Config: config } = await this.#deps.daemon.call(() => container.inspect());
    return posix.join(config.WorkingDir || '/', path);
  }
}

function asDockerError(error: unknown): BerthError {
  return error instanceof BerthError ? error : toDockerError(error);
}
