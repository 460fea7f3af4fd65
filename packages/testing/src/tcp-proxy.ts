import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

/** A cable between a server and its database, which can be pulled and plugged in again. */
export interface TcpProxy {
  /** The same database, at this end of the cable. */
  url: string;
  disconnect(): Promise<void>;
  reconnect(): Promise<void>;
  /** Nothing arrives any more, and neither side gets an error, as behind a firewall that drops everything. */
  freeze(): void;
  thaw(): void;
  /** From now on, this end leads to the database server at this address. */
  retarget(url: string): void;
}

/** At this address of the machine. */
export async function startTcpProxy(url: string, host = '127.0.0.1'): Promise<TcpProxy> {
  let target = new URL(url);
  const sockets = new Set<Socket>();
  let port = 0;
  let isFrozen = false;
  const open = () => {
    const server = createServer((near) => {
      const far = connect({ host: target.hostname, port: Number(target.port) });
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        sockets.add(from);
        from.on('error', () => to.destroy()).on('close', () => (sockets.delete(from), to.destroy()));
        from.pipe(to);
        if (isFrozen) from.unpipe(to).pause();
        from.on('thaw', () => from.pipe(to));
      }
    });
    return new Promise<typeof server>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, () => resolve(server));
    });
  };
  let server = await open();
  ({ port } = server.address() as AddressInfo);
  return {
    url: Object.assign(new URL(url), { hostname: host, port: String(port) }).href,
    disconnect: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
    reconnect: async () => {
      server = await open();
    },
    freeze: () => {
      isFrozen = true;
      for (const socket of sockets) socket.unpipe().pause();
    },
    thaw: () => {
      isFrozen = false;
      for (const socket of sockets) socket.emit('thaw');
    },
    retarget: (to) => {
      target = new URL(to);
    },
  };
}
