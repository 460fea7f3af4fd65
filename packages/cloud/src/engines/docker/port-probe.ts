import { networkInterfaces } from 'node:os';
import { connectionOpens } from '../port-connection.ts';

/** Docker's proxy accepts every connection and closes it when nothing listens behind it, within this time. */
const PROXY_CLOSE_DELAY_MS = 100;

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
function isLocalAddress(address: string): boolean {
  return Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some((one) => one.address === address),
  );
}
