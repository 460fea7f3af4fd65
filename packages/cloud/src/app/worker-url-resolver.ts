import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WorkerListener } from '../http/worker-listener.ts';
import { listeningOrigin } from '../http/server-origin.ts';
import type { Log } from '../support/log.ts';

/** An engine whose instances have a network of their own. */
export interface ContainerEngine {
  /** This address as an instance has to call it. */
  urlForContainers(url: string): Promise<string> | string;
  /** The machine's own address in their network, and who is in it. */
  networkOfContainers(): Promise<{ address: string; subnet: string } | undefined>;
}

const LOOPBACK = /^(?:127\.|::1$)/;

export interface WorkerUrlResolverDeps {
  /** Said by the operator; empty where this finds out by itself. */
  workerUrl: string;
  server: () => Server;
  /** One more server, for workers alone. */
  createServer: () => Server;
  log: Log;
}

/** How containers reach this server: where the operator says, or else where it listens, with a door of their own where that is the loopback. */
export class WorkerUrlResolver {
  readonly #deps: WorkerUrlResolverDeps;
  #door: Promise<WorkerListener | undefined> | undefined;

  constructor(deps: WorkerUrlResolverDeps) {
    this.#deps = deps;
  }

  async resolve(engine: ContainerEngine): Promise<string> {
    const { workerUrl, server } = this.#deps;
    if (workerUrl !== '') return workerUrl;
    const address = new URL(listeningOrigin(server()));
    const door = await this.#opened(engine);
    if (door !== undefined) address.port = String(door.port);
    return engine.urlForContainers(address.origin);
  }

  async close(): Promise<void> {
    await (await this.#opening())?.close();
  }

  async closeAllConnections(): Promise<void> {
    (await this.#opening())?.closeAllConnections();
  }

  /** Whoever wanted it opened is told where that fails. */
  async #opening(): Promise<WorkerListener | undefined> {
    return this.#door?.catch(() => undefined);
  }

  /** Opened once. As long as there is no place for one it is tried again: a network may come with its first container. */
  #opened(engine: ContainerEngine): Promise<WorkerListener | undefined> {
    const opening = (this.#door ??= this.#open(engine));
    const again = (): void => {
      if (this.#door === opening) this.#door = undefined;
    };
    opening.then((door) => door ?? again(), again);
    return opening;
  }

  async #open(engine: ContainerEngine): Promise<WorkerListener | undefined> {
    const { server, createServer, log } = this.#deps;
    const { address, port } = server().address() as AddressInfo;
    if (!LOOPBACK.test(address)) return undefined;
    const network = await engine.networkOfContainers();
    if (network === undefined) return undefined;
    const door = await WorkerListener.open(createServer(), network, port, log);
    log.info({ address: network.address, port: door.port }, 'containers reach their endpoints here');
    return door;
  }
}
