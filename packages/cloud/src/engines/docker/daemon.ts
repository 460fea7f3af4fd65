import { homedir } from 'node:os';
import { join } from 'node:path';
import type Docker from 'dockerode';
import { BerthError } from '../../support/errors.ts';
import { failureOf, wordsOf } from './failure.ts';

const ANSWERS_WITHIN_MS = 500;
/** Nothing that ends by itself takes this long, unless the daemon hangs. */
const PATIENCE_MS = 120_000;
const UNIX = 'unix://';
const PIPE = 'npipe://';

/** The library's types leave the options out. */
interface Pinged {
  ping(options: { abortSignal: AbortSignal }): Promise<unknown>;
}

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
  async answers(): Promise<boolean> {
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
  async ask<T>(question: (client: Docker) => Promise<T>, patienceMs = PATIENCE_MS): Promise<T> {
    const client = await this.client();
    const late = Promise.withResolvers<never>();
    late.promise.catch(() => undefined);
    const timer = setTimeout(() => late.reject(new BerthError('unavailable', `Docker did not answer within ${patienceMs / 1000} s`)), patienceMs);
    try {
      return await Promise.race([question(client), late.promise]);
    } catch (error) {
      throw error instanceof BerthError ? error : failureOf(error);
    } finally {
      clearTimeout(timer);
    }
  }

  /** The same, for an answer that comes when something happens. */
  async waitFor<T>(question: (client: Docker) => Promise<T>): Promise<T> {
    try {
      return await question(await this.client());
    } catch (error) {
      throw error instanceof BerthError ? error : failureOf(error);
    }
  }

  /** Podman has the same interface, and a few ways of its own. */
  async isPodman(): Promise<boolean> {
    this.#isPodman ??= (await this.ask((client) => client.version())).Components?.some(({ Name: name }) => /podman/i.test(name)) ?? false;
    return this.#isPodman;
  }

  async #find(): Promise<Docker> {
    // The library is large, and most machines without a daemon never need it.
    const { default: Client } = await import('dockerode');
    const places = this.#places();
    const clients = places.map((place) => new Client(optionsOf(place)));
    const pings = clients.map((client) => (client as Pinged).ping({ abortSignal: AbortSignal.timeout(ANSWERS_WITHIN_MS) }));
    const answers = await Promise.allSettled(pings);
    const first = clients.find((_, index) => answers[index]?.status === 'fulfilled');
    if (first !== undefined) return first;
    const only = answers.length === 1 && answers[0]?.status === 'rejected' ? `: ${wordsOf(answers[0].reason)}` : '';
    throw new BerthError('unavailable', `no Docker daemon answers at ${places.join(', ')}${only}`);
  }

  #places(): string[] {
    const given = this.#host ?? this.#env['DOCKER_HOST'];
    if (given) return [given];
    if (process.platform === 'win32') return [`${PIPE}//./pipe/docker_engine`];
    const own = this.#env['XDG_RUNTIME_DIR'];
    const sockets = ['/var/run/docker.sock', join(homedir(), '.docker/run/docker.sock'), ...(own ? [join(own, 'docker.sock')] : []), '/run/podman/podman.sock', ...(own ? [join(own, 'podman/podman.sock')] : [])];
    return sockets.map((socket) => `${UNIX}${socket}`);
  }
}

/** An address in the way of DOCKER_HOST. */
export function optionsOf(host: string): Docker.DockerOptions {
  for (const scheme of [UNIX, PIPE]) {
    // The library reads DOCKER_HOST too, and would prefer a host in it to this socket.
    if (host.startsWith(scheme)) return { socketPath: host.slice(scheme.length), host: undefined };
  }
  const { protocol, hostname, port, username } = new URL(host.includes('://') ? host : `tcp://${host}`);
  if (protocol === 'ssh:') return { protocol: 'ssh', host: hostname, ...(port && { port }), username };
  return { protocol: protocol === 'https:' || port === '2376' ? 'https' : 'http', host: hostname, port: port || '2375' };
}
