import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { parseDaemonAddress } from './client/daemon-address.ts';

/** A proxy to the daemon whose connections can be cut. */
export class DockerTestProxy {
  readonly host: string;
  readonly #path: string;
  readonly #target: string;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;

  constructor(path: string, target: string) {
    this.host = `unix://${path}`;
    this.#path = path;
    this.#target = target;
  }

  async open(): Promise<void> {
    const address = parseDaemonAddress(this.#target);
    this.#server = createServer((socket) => {
      const daemon =
        address.kind === 'socket' ? connect(address.socketPath) : connect(Number(address.port), address.host);
      for (const [one, other] of [
        [socket, daemon],
        [daemon, socket],
      ] as const) {
        this.#sockets.add(one);
        one.pipe(other);
        one.on('error', () => other.destroy());
        one.on('close', () => other.destroy());
      }
    });
    await once(this.#server.listen(this.#path), 'listening');
  }

  async close(): Promise<void> {
    const closed = this.#server === undefined ? undefined : once(this.#server, 'close');
    this.#server?.close();
    for (const socket of this.#sockets) socket.destroy();
    this.#sockets.clear();
    this.#server = undefined;
    await closed;
    await rm(this.#path, { force: true });
  }
}
