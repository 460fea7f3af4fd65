import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AddressRanges } from '../support/address-ranges.ts';
import type { Log } from '../support/log.ts';

/** The networks of the containers, and this machine's address for them. */
export interface ContainerNetwork {
  address: string;
  subnets: readonly string[];
}

/**
 * A second listener, for a server that otherwise listens on loopback only: containers reach this
 * machine only at its address in their network. Connections from outside that network are closed,
 * even where the machine would accept them.
 */
export class WorkerListener {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  /**
   * On the same port as the server, so that containers of an earlier run find it again; if it is taken, on
   * another.
   */
  static async open(
    server: Server,
    { address, subnets }: ContainerNetwork,
    port: number,
    log: Log,
  ): Promise<WorkerListener> {
    const allowed = new AddressRanges(subnets);
    server.prependListener('connection', (socket) => {
      const from = socket.remoteAddress ?? '';
      if (from !== address && !allowed.includes(from)) socket.destroy();
    });
    try {
      await listen(server, address, port);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
      log.warn(
        { address, port },
        'the port is taken in the network of the containers; another one is used, and containers of an ' +
          'earlier run cannot reconnect',
      );
      await listen(server, address, 0);
    }
    return new WorkerListener(server);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    await new Promise((resolve) => this.#server.close(resolve));
  }

  closeAllConnections(): void {
    this.#server.closeAllConnections();
  }
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  server.listen({ host, port });
  // `once` rejects if an error comes first.
  await once(server, 'listening');
}
