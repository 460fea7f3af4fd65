import { connect, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';

const CONNECT_TIMEOUT_MS = 1000;
/** Docker's proxy takes any connection and closes it when nobody listens behind it. This long it may take for that. */
const PROXY_CLOSE_DELAY_MS = 100;
const DRAIN_TIMEOUT_MS = 1000;

export interface ProbeTarget {
  /** The container's own address, and this machine's in its network; empty where there is none. */
  address: string;
  gateway: string;
  port: number;
  /** The number that is published on this machine. */
  hostPort: number;
}

/** Whether somebody listens on a container's port. */
export function isListening({ address, gateway, port, hostPort }: ProbeTarget): Promise<boolean> {
  // From a machine in the same network the port itself can be asked, which answers at once.
  return address !== '' && isLocalAddress(gateway)
    ? connectionOpens(address, port, 0)
    : connectionOpens('127.0.0.1', hostPort, PROXY_CLOSE_DELAY_MS);
}

/** Whether this machine has the address itself; it has not where containers live in a virtual machine. */
export function isLocalAddress(address: string): boolean {
  return Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some((one) => one.address === address),
  );
}

/** A connection that opens and stays open for a while, or brings something. */
function connectionOpens(host: string, port: number, staysMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const tell = (answer: boolean): void => {
      clearTimeout(timer);
      if (answer) drainAndClose(socket);
      else socket.destroy();
      resolve(answer);
    };
    let timer = setTimeout(() => tell(false), CONNECT_TIMEOUT_MS);
    socket.once('error', () => tell(false));
    socket.once('close', () => tell(false));
    socket.once('connect', () => {
      if (staysMs === 0) return tell(true);
      clearTimeout(timer);
      timer = setTimeout(() => tell(true), staysMs);
      socket.once('data', () => tell(true));
    });
  });
}

/** Whoever greets those who connect is heard out: a connection that is cut off meanwhile is an error, which ends the simplest of servers. */
function drainAndClose(socket: Socket): void {
  socket.resume().end();
  socket.setTimeout(DRAIN_TIMEOUT_MS, () => socket.destroy()).unref();
}
