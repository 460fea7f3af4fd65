import { connect, type Socket } from 'node:net';

const CONNECT_TIMEOUT_MS = 1000;
const DRAIN_TIMEOUT_MS = 1000;

/** Whether a connection opens and then stays open for a while or receives data. */
export function connectionOpens(host: string, port: number, staysMs = 0): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const finish = (isOpen: boolean): void => {
      clearTimeout(timer);
      if (isOpen) drainAndClose(socket);
      else socket.destroy();
      resolve(isOpen);
    };
    let timer = setTimeout(() => finish(false), CONNECT_TIMEOUT_MS);
    socket.once('error', () => finish(false));
    socket.once('close', () => finish(false));
    socket.once('connect', () => {
      if (staysMs === 0) return finish(true);
      clearTimeout(timer);
      timer = setTimeout(() => finish(true), staysMs);
      socket.once('data', () => finish(true));
    });
  });
}

/**
 * Reads what a server sends first before closing: a connection cut off in between is an error that ends
 * simple servers.
 */
function drainAndClose(socket: Socket): void {
  socket.resume().end();
  socket.setTimeout(DRAIN_TIMEOUT_MS, () => socket.destroy()).unref();
}
