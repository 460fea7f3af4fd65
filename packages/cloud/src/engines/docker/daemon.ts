import type Docker from 'dockerode';
import type { Clock } from '../../support/clock.ts';
import { systemClock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import { toDockerError } from './docker.errors.ts';
import { findDaemon, dockerClientOptions, candidateHosts } from './daemon-discovery.ts';

/** No request takes this long unless the daemon hangs. */
const REQUEST_TIMEOUT_MS = 120_000;

/** The daemon that runs the containers: Docker, or Podman with the same API. */
export class Daemon {
  readonly #host: string | undefined;
  readonly #env: NodeJS.ProcessEnv;
  #client: Promise<Docker> | undefined;
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
  client(): Promise<Docker> {
    const client = (this.#client ??= this.#find());
    client.catch(() => {
      if (this.#client === client) this.#client = undefined;
    });
    return client;
  }

  /** Sends a request. Errors carry the daemon's message. */
  async call<T>(request: (client: Docker) => Promise<T>, timeoutMs = REQUEST_TIMEOUT_MS): Promise<T> {
    const client = await this.client();
    const timeout = Promise.withResolvers<never>();
    timeout.promise.catch(() => undefined);
    const timer = setTimeout(
      () =>
        timeout.reject(new BerthError('unavailable', `Docker did not answer within ${timeoutMs / 1000} s`)),
      timeoutMs,
    );
    try {
      return await Promise.race([request(client), timeout.promise]);
    } catch (error) {
      throw error instanceof BerthError ? error : toDockerError(error);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Like call(), for requests that wait for an event. */
  async callWithoutTimeout<T>(request: (client: Docker) => Promise<T>): Promise<T> {
    try {
      return await request(await this.client());
    } catch (error) {
      throw error instanceof BerthError ? error : toDockerError(error);
    }
  }

  /** Podman has the same API with a few differences. */
  async isPodman(): Promise<boolean> {
    this.#isPodman ??=
      (await this.call((client) => client.version())).Components?.some(({ Name: name }) =>
        /podman/i.test(name),
      ) ?? false;
    return this.#isPodman;
  }

  async #find(): Promise<Docker> {
    const host = await findDaemon(candidateHosts(this.#host, this.#env));
    const { default: Client } = await import('dockerode');
    return new Client(dockerClientOptions(host));
  }
}
