import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Daemon } from './daemon.ts';
import { isNotFound } from './docker.errors.ts';

/** The name by which a container reaches the machine that it is on. Docker is told to know it, Podman knows its own. */
export const CONTAINER_HOST_NAME = {
  docker: 'host.docker.internal',
  podman: 'host.containers.internal',
} as const;
/** The network that containers are in when nothing else is said. */
const DEFAULT_NETWORK = { docker: 'bridge', podman: 'podman' } as const;
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/** An address of this machine as a container has to write it. */
export function containerUrl(url: string, hostName: string): string {
  const address = new URL(url);
  if (!LOOPBACK.test(address.hostname)) return url;
  address.hostname = hostName;
  return url.endsWith('/') ? address.href : address.href.replace(/\/$/, '');
}

export interface ContainerNetwork {
  /** This machine's address in it. */
  address: string;
  /** In the way of 172.17.0.0/16. */
  subnet: string;
}

/** The containers' network, where this machine has an address in it now. */
export async function networkOfContainers(daemon: Daemon): Promise<ContainerNetwork | undefined> {
  const name = (await daemon.isPodman()) ? DEFAULT_NETWORK.podman : DEFAULT_NETWORK.docker;
  try {
    const { IPAM: ipam } = await daemon.call(
      (client) =>
        client.getNetwork(name).inspect() as Promise<{
          IPAM?: { Config?: { Gateway?: string; Subnet?: string }[] | null };
        }>,
    );
    // There may be one of each family; containers are told the first.
    const { Gateway: address, Subnet: subnet } = ipam?.Config?.[0] ?? {};
    return address !== undefined && subnet !== undefined && (await canListen(address))
      ? { address, subnet }
      : undefined;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** Tried, not looked up: a network without a running container is no network that the system lists. */
async function canListen(address: string): Promise<boolean> {
  const server = createServer().listen(0, address);
  try {
    await once(server, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}
