import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Network } from './client/docker-objects.ts';
import type { Daemon } from './daemon.ts';
import { isNotFound } from './client/docker.errors.ts';

/**
 * The host name under which a container reaches its host. For Docker it is configured per container, Podman
 * defines its own.
 */
export const CONTAINER_HOST_NAME = {
  docker: 'host.docker.internal',
  podman: 'host.containers.internal',
} as const;
/** The default network of containers. */
const DEFAULT_NETWORK = { docker: 'bridge', podman: 'podman' } as const;
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/** A URL of this machine in the form that containers can reach. */
export function containerUrl(url: string, hostName: string): string {
  const address = new URL(url);
  if (!LOOPBACK.test(address.hostname)) return url;
  address.hostname = hostName;
  return url.endsWith('/') ? address.href : address.href.replace(/\/$/, '');
}

export interface ContainerNetwork {
  /** This machine's address in the network. */
  address: string;
  /** Where containers connect from, such as 172.17.0.0/16. */
  subnets: readonly string[];
}

/** The containers' default network; undefined if this machine has no address in it now. */
export async function networkOfContainers(daemon: Daemon): Promise<ContainerNetwork | undefined> {
  const name = (await daemon.isPodman()) ? DEFAULT_NETWORK.podman : DEFAULT_NETWORK.docker;
  try {
    const { IPAM: ipam } = await daemon.call((client) => client.get<Network>(`/networks/${name}`));
    // There may be an IPv4 and an IPv6 entry; containers use the first.
    const { Gateway: gateway, Subnet: subnet } = ipam?.Config?.[0] ?? {};
    if (subnet === undefined) return undefined;
    // A daemon that was started again and found its bridge does not name the gateway.
    const address = gateway ?? firstAddress(subnet);
    return (await canListen(address)) ? { address, subnets: [subnet] } : undefined;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** The address that Docker takes for itself: 172.17.0.1 of 172.17.0.0/16. */
export function firstAddress(subnet: string): string {
  const base = subnet.replace(/\/.*$/, '');
  return base.includes(':')
    ? base.replace(/::$/, '::1')
    : base.replace(/\d+$/, (last) => String(Number(last) + 1));
}

/** Tests by listening: the system does not list the interface of a network without a running container. */
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
