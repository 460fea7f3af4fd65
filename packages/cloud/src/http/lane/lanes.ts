import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { Lane } from './lane.ts';
import type { LaneService } from './lane.ts';

const LOOK_EVERY_MS = 5_000;

/** Ends the connections on the fast lane; the server knows those alone that were given to it. */
export interface Lanes {
  /** The idle ones now, the others when they are answered. */
  close(): void;
  /** All of them, now. */
  cut(): void;
}

/** Puts the fast lane before a server: every connection begins there. */
export function openLanes(server: Server, service: LaneService): Lanes {
  const lanes = new Set<Lane>();
  const [toNode] = server.listeners('connection') as ((socket: Socket) => void)[];
  if (toNode === undefined) throw new Error('the server takes no connections');
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    lanes.add(
      new Lane({
        socket,
        service,
        handOver: (given) => toNode.call(server, given),
        onClose: (lane) => lanes.delete(lane),
      }),
    );
  });
  const looking = setInterval(() => {
    // Not by the clock: set forward, it would end them all together.
    const now = performance.now();
    for (const lane of lanes) lane.look(now);
  }, LOOK_EVERY_MS).unref();
  return {
    close: () => {
      clearInterval(looking);
      for (const lane of lanes) if (lane.idle) lane.end();
    },
    cut: () => {
      for (const lane of lanes) lane.cut();
    },
  };
}
