import type { Clock } from '../../support/clock.ts';
import { systemClock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import { DockerClient } from './client/docker-client.ts';
import type { DaemonVersion } from './client/docker-objects.ts';
import { toDockerError } from './client/docker.errors.ts';
import { findDaemon, candidateHosts } from './daemon-discovery.ts';

/** The daemon that runs the containers: Docker, or Podman with the same API. */
export class Daemon {
  readonly #host: string | undefined;
  readonly #env: NodeJS.ProcessEnv;
  #client: Promise<DockerClient> | undefined;
  #isPodman: boolean | undefined;

  /** Its times are those of the machine. */
  readonly clock: Clock;

  constructor(host: string | undefined, env: NodeJS.ProcessEnv = process.env, clock: Clock = systemClock) {
    this.#host = host;
    this.#env = env;
    this.clock = clock;
  }

  /** Whether a daemon answers; returns quickly. */
  async isReachable(): Promise<boolean> {
    try {
      await this.client();
      return true;
    } catch (error) {
      if (error instanceof BerthError && error.code === 'unavailable') return false;
      throw error;
    }
  }

  /** The first daemon that answers is kept: it has the instances. */
  client(): Promise<DockerClient> {
    const client = (this.#client ??= this.#find());
    client.catch(() => {
      if (this.#client === client) this.#client = undefined;
    });
    return client;
  }

  /** Sends requests. Errors carry the daemon's message. */
  async call<T>(request: (client: DockerClient) => Promise<T>): Promise<T> {
    try {
      return await request(await this.client());
    } catch (error) {
      throw error instanceof BerthError ? error : toDockerError(error);
    }
  }

  /** Podman has the same API with a few differences. */
  async isPodman(): Promise<boolean> {
    this.#isPodman ??=
      (await this.call((client) => client.get<DaemonVersion>('/version'))).Components?.some(
        ({ Name: name }) => /podman/i.test(name),
      ) ?? false;
    return this.#isPodman;
  }

  async #find(): Promise<DockerClient> {
    return new DockerClient(await findDaemon(candidateHosts(this.#host, this.#env)), this.#env);
  }
}
