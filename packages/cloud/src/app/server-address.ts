import type { Server } from 'node:http';
import { listeningOrigin, publicOrigin } from '../http/server-origin.ts';

/** The HTTP servers of this process, once they are created. */
export interface AttachedServers {
  server: Server;
  /** Creates another server, for workers and pods alone. */
  createWorkerServer(): Server;
  /** Where HTTPS is spoken. */
  tls?:
    | { hostName(): string | undefined; acceptor: { allowPlain(ranges: readonly string[]): void } }
    | undefined;
}

/** Where this server is reached. Parts that need the address only later may be built before the server. */
export class ServerAddress {
  readonly #publicUrl: string;
  #attached: AttachedServers | undefined;

  constructor(publicUrl: string) {
    this.#publicUrl = publicUrl;
  }

  attach(servers: AttachedServers): void {
    this.#attached = servers;
  }

  get servers(): AttachedServers {
    if (this.#attached === undefined) throw new Error('the HTTP server is not created yet');
    return this.#attached;
  }

  /**
   * The address it listens at, as this machine reaches it: by HTTP, also where other clients must use HTTPS.
   */
  get listeningOrigin(): string {
    return listeningOrigin(this.servers.server);
  }

  /** The address at which clients reach it. */
  get publicOrigin(): string {
    const { server, tls } = this.servers;
    return publicOrigin(this.#publicUrl, server, tls);
  }
}
