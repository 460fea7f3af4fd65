import type { AddressInfo } from 'node:net';
import { WorkerListener } from '../http/worker-listener.ts';
import type { Log } from '../support/log.ts';
import type { ServerAddress } from './server-address.ts';

/** An engine whose instances have a network of their own. */
export interface ContainerEngine {
  /** The URL at which an instance reaches this URL of the host. */
  urlForContainers(url: string): Promise<string> | string;
  /** The host's own address for the instances, and the subnets that they connect from. */
  networkOfContainers(): Promise<{ address: string; subnets: readonly string[] } | undefined>;
  /** Instances reach this URL, and nothing else of the host where the engine can see to it. */
  allowServerUrl?(url: string): Promise<void>;
}

const LOOPBACK = /^(?:127\.|::1$)/;

export interface WorkerUrlResolverDeps {
  /** Configured by the operator; empty to find it out. */
  workerUrl: string;
  address: ServerAddress;
  log: Log;
}

/**
 * Finds the URL at which containers reach this server: the configured one, or else the address
 * it listens at. Where that is the loopback interface, a second listener is opened in the
 * containers' network, for workers and pods alone.
 */
export class WorkerUrlResolver {
  readonly #deps: WorkerUrlResolverDeps;
  #allowedUrl: string | undefined;
  #listener: Promise<WorkerListener | undefined> | undefined;

  constructor(deps: WorkerUrlResolverDeps) {
    this.#deps = deps;
  }

  async resolve(engine: ContainerEngine): Promise<string> {
    const url = await this.#find(engine);
    if (url !== this.#allowedUrl) await engine.allowServerUrl?.(url);
    this.#allowedUrl = url;
    return url;
  }

  async #find(engine: ContainerEngine): Promise<string> {
    const { workerUrl, address } = this.#deps;
    if (workerUrl !== '') return workerUrl;
    const url = new URL(address.listeningOrigin);
    const listener = await this.#openOnce(engine);
    if (listener !== undefined) url.port = String(listener.port);
    return engine.urlForContainers(url.origin);
  }

  async close(): Promise<void> {
    await (await this.#currentListener())?.close();
  }

  async closeAllConnections(): Promise<void> {
    (await this.#currentListener())?.closeAllConnections();
  }

  /** A failure to open is reported to the caller of `resolve` alone. */
  async #currentListener(): Promise<WorkerListener | undefined> {
    return this.#listener?.catch(() => undefined);
  }

  /**
   * Tries again after a failure, and where there is no network yet: it may appear with its first container.
   */
  #openOnce(engine: ContainerEngine): Promise<WorkerListener | undefined> {
    const opening = (this.#listener ??= this.#open(engine));
    const retryNextTime = (): void => {
      if (this.#listener === opening) this.#listener = undefined;
    };
    opening.then((listener) => listener ?? retryNextTime(), retryNextTime);
    return opening;
  }

  async #open(engine: ContainerEngine): Promise<WorkerListener | undefined> {
    const { address: serverAddress, log } = this.#deps;
    const { server, createWorkerServer, tls } = serverAddress.servers;
    const { address, port } = server.address() as AddressInfo;
    if (!LOOPBACK.test(address) && tls === undefined) return undefined;
    const network = await engine.networkOfContainers();
    if (network === undefined) return undefined;
    if (!LOOPBACK.test(address)) {
      // Containers reach the port by an address that no certificate is for.
      tls?.acceptor.allowPlain(network.subnets);
      return undefined;
    }
    const listener = await WorkerListener.open(createWorkerServer(), network, port, log);
    log.info({ address: network.address, port: listener.port }, 'containers reach this server here');
    return listener;
  }
}
