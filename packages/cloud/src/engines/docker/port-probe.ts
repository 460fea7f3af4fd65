import { connect, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';

const CONNECT_TIMEOUT_MS = 1000;
/** Docker's proxy accepts every connection and closes it when nothing listens behind it, within this time. */
const PROXY_CLOSE_DELAY_MS = 100;
const DRAIN_TIMEOUT_MS = 1000;

export interface ProbeTarget {
  /** The container's address and the host's address in its network; empty if there is none. */
  address: string;
  gateway: string;
  port: number;
  /** The published port on this machine. */
  hostPort: number;
}

/** Whether a process listens on a container's port. */
export function isListening({ address, gateway, port, hostPort }: ProbeTarget): Promise<boolean> {
  // In the same network, the container's port can be probed directly, without the proxy.
  return address !== '' && isLocalAddress(gateway)
    ? connectionOpens(address, port, 0)
    : connectionOpens('127.0.0.1', hostPort, PROXY_CLOSE_DELAY_MS);
}

/** Whether the address belongs to this machine. It does not if containers run in a virtual machine. */
export function isLocalAddress(address: string): boolean {
  return Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some((one) => one.address === address),
  );
}

/** Whether a connection opens and then stays open for a while or receives data. */
function connectionOpens(host: string, port: number, staysMs: number): Promise<boolean> {
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
