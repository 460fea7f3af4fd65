import type Docker from 'dockerode';
import { BerthError } from '../../support/errors.ts';
import { toDockerError } from './docker.errors.ts';
import { findDaemon, dockerClientOptions, candidateHosts } from './daemon-discovery.ts';

/** Nothing that ends by itself takes this long, unless the daemon hangs. */
const REQUEST_TIMEOUT_MS = 120_000;

/** The daemon that runs the containers: Docker's, or Podman's with the same interface. */
export class Daemon {
  readonly #host: string | undefined;
  readonly #env: NodeJS.ProcessEnv;
  #client: Promise<Docker> | undefined;
  #isPodman: boolean | undefined;

  constructor(host: string | undefined, env: NodeJS.ProcessEnv = process.env) {
    this.#host = host;
    this.#env = env;
  }

  /** Whether one answers, told soon. */
  async isReachable(): Promise<boolean> {
    try {
      await this.client();
      return true;
    } catch (error) {
      if (error instanceof BerthError && error.code === 'unavailable') return false;
      throw error;
    }
  }

  /** The first that answers stays the one: instances are with it. */
  client(): Promise<Docker> {
    const client = (this.#client ??= this.#find());
    client.catch(() => {
      if (this.#client === client) this.#client = undefined;
    });
    return client;
  }

  /** Asks it for something. What goes wrong is told in its words. */
  async call<T>(question: (client: Docker) => Promise<T>, patienceMs = REQUEST_TIMEOUT_MS): Promise<T> {
    const client = await this.client();
    const late = Promise.withResolvers<never>();
    late.promise.catch(() => undefined);
    const timer = setTimeout(
      () => late.reject(new BerthError('unavailable', `Docker did not answer within ${patienceMs / 1000} s`)),
      patienceMs,
    );
    try {
      return await Promise.race([question(client), late.promise]);
    } catch (error) {
      throw error instanceof BerthError ? error : toDockerError(error);
    } finally {
      clearTimeout(timer);
    }
  }

  /** The same, for an answer that comes when something happens. */
  async callWithoutTimeout<T>(question: (client: Docker) => Promise<T>): Promise<T> {
    try {
      return await question(await this.client());
    } catch (error) {
      throw error instanceof BerthError ? error : toDockerError(error);
    }
  }

  /** Podman has the same interface, and a few ways of its own. */
  async isPodman(): Promise<boolean> {
    this.#isPodman ??=
      (await this.call((client) => client.version())).Components?.some(({ Name: name }) =>
        /podman/i.test(name),
      ) ?? false;
    return this.#isPodman;
  }

  async #find(): Promise<Docker> {
    const place = await findDaemon(candidateHosts(this.#host, this.#env));
    const { default: Client } = await import('dockerode');
    return new Client(dockerClientOptions(place));
  }
}
