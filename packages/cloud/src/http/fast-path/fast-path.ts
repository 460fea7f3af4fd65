import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { FastPathConnection } from './fast-path-connection.ts';
import type { FastPathHandler } from './fast-path-connection.ts';

const TIMEOUT_CHECK_MS = 5_000;

/** Ends the connections on the fast lane; the server knows those alone that were given to it. */
export interface FastPath {
  /** The idle ones now, the others when they are answered. */
  close(): void;
  /** All of them, now. */
  destroyConnections(): void;
}

/** Puts the fast lane before a server: every connection begins there. */
export function installFastPath(server: Server, service: FastPathHandler): FastPath {
  const fastPath = new Set<FastPathConnection>();
  const [toNode] = server.listeners('connection') as ((socket: Socket) => void)[];
  if (toNode === undefined) throw new Error('the server takes no connections');
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    fastPath.add(
      new FastPathConnection({
        socket,
        handler: service,
        passToNode: (given) => toNode.call(server, given),
        onClose: (lane) => fastPath.delete(lane),
      }),
    );
  });
  const looking = setInterval(() => {
    // Not by the clock: set forward, it would end them all together.
    const now = performance.now();
    for (const lane of fastPath) lane.checkTimeout(now);
  }, TIMEOUT_CHECK_MS).unref();
  return {
    close: () => {
      clearInterval(looking);
      for (const lane of fastPath) if (lane.idle) lane.end();
    },
    destroyConnections: () => {
      for (const lane of fastPath) lane.destroy();
    },
  };
}
