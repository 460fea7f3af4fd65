import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import type WebSocket from 'ws';
import type { InstanceAddress } from '../instance.ts';
import type { KubernetesClient } from './client/kubernetes-client.ts';

const PROTOCOLS = ['v4.channel.k8s.io'];
const [DATA, ERROR] = [0, 1];
/** The first message of each channel is the number of the port. */
const PORT_BYTES = 2;
const MAX_BUFFERED_BYTES = 1024 ** 2;
const BUFFER_POLL_MS = 10;
/** A port where nothing listens is refused within this time. */
const PROBE_MS = 300;
const LOOPBACK = '127.0.0.1';

/**
 * Ports of pods on the loopback interface of this machine, through the API server: for a Berth without a
 * route to the cluster's network. Each connection is a WebSocket of its own.
 */
export class PortForwards {
  readonly #client: KubernetesClient;
  readonly #servers = new Map<string, Promise<Server>>();

  constructor(client: KubernetesClient) {
    this.#client = client;
  }

  /** Where this port of a pod is reached; undefined if nothing listens there. */
  async address(podPath: string, port: number): Promise<InstanceAddress | undefined> {
    if (!(await this.#listens(podPath, port))) return undefined;
    const key = `${podPath} ${port}`;
    let server = this.#servers.get(key);
    if (server === undefined) {
      server = this.#serve(podPath, port);
      this.#servers.set(key, server);
      server.catch(() => this.#servers.delete(key));
    }
    return { host: LOOPBACK, port: ((await server).address() as AddressInfo).port };
  }

  /** Ends what is forwarded to a pod that is gone. */
  async close(podPath?: string): Promise<void> {
    for (const [key, server] of this.#servers)
      if (podPath === undefined || key.startsWith(`${podPath} `)) {
        this.#servers.delete(key);
        (await server.catch(() => undefined))?.close();
      }
  }

  async #serve(podPath: string, port: number): Promise<Server> {
    const server = createServer((socket) => {
      socket.on('error', () => socket.destroy());
      this.#forward(podPath, port, socket).catch(() => socket.destroy());
    });
    server.unref();
    await once(server.listen(0, LOOPBACK), 'listening');
    return server;
  }

  async #listens(podPath: string, port: number): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const connection = await this.#open(podPath, port, (channel, bytes) => {
      if (bytes.length > 0) resolve(channel === DATA);
    });
    const timer = setTimeout(() => resolve(true), PROBE_MS);
    connection.on('close', () => resolve(false)).on('error', () => resolve(false));
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
      connection.terminate();
    }
  }

  async #forward(podPath: string, port: number, socket: Socket): Promise<void> {
    socket.pause();
    const connection = await this.#open(podPath, port, (channel, bytes, opened) => {
      if (channel === ERROR && bytes.length > 0) socket.destroy();
      else if (bytes.length > 0 && !socket.write(bytes)) {
        opened.pause();
        socket.once('drain', () => opened.resume());
      }
    });
    connection.on('close', () => socket.end()).on('error', () => socket.destroy());
    socket.on('close', () => connection.close());
    for await (const bytes of socket as AsyncIterable<Buffer>) {
      connection.send(Buffer.concat([Buffer.from([DATA]), bytes]));
      while (connection.bufferedAmount > MAX_BUFFERED_BYTES && connection.readyState === connection.OPEN)
        await new Promise((resolve) => setTimeout(resolve, BUFFER_POLL_MS));
    }
  }

  #open(
    podPath: string,
    port: number,
    onBytes: (channel: number, bytes: Buffer, connection: WebSocket) => void,
  ): Promise<WebSocket> {
    return this.#client.connect(`${podPath}/portforward`, { ports: port }, PROTOCOLS, (connection) => {
      connection.binaryType = 'nodebuffer';
      receive(connection, (channel, bytes) => onBytes(channel, bytes, connection));
    });
  }
}

/** Calls with what each channel brings after the number of the port. */
function receive(connection: WebSocket, onBytes: (channel: number, bytes: Buffer) => void): void {
  const skipped = new Map<number, number>();
  connection.on('message', (message: Buffer) => {
    const channel = message[0] ?? DATA;
    const skip = PORT_BYTES - (skipped.get(channel) ?? 0);
    const bytes = message.subarray(1);
    skipped.set(channel, Math.min(PORT_BYTES, (skipped.get(channel) ?? 0) + bytes.length));
    onBytes(channel, bytes.subarray(Math.min(skip, bytes.length)));
  });
}
