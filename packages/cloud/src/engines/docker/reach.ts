import type { Daemon } from './daemon.ts';
import { isGone } from './failure.ts';
import { isOurs } from './listening.ts';

/** The name by which a container reaches the machine that it is on. Docker is told to know it, Podman knows its own. */
export const HOST_NAME_INSIDE = { docker: 'host.docker.internal', podman: 'host.containers.internal' } as const;
/** The network that containers are in when nothing else is said. */
const NETWORK = { docker: 'bridge', podman: 'podman' } as const;
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/** An address of this machine as a container has to write it. */
export function urlInside(url: string, hostName: string): string {
  const address = new URL(url);
  if (!LOOPBACK.test(address.hostname)) return url;
  address.hostname = hostName;
  return url.endsWith('/') ? address.href : address.href.replace(/\/$/, '');
}

/** This machine's address in the containers' network, if it has one there now. */
export async function addressForContainers(daemon: Daemon): Promise<string | undefined> {
  const name = (await daemon.isPodman()) ? NETWORK.podman : NETWORK.docker;
  try {
    const { IPAM: ipam } = await daemon.ask((client) => client.getNetwork(name).inspect() as Promise<{ IPAM?: { Config?: { Gateway?: string }[] | null } }>);
    const gateway = ipam?.Config?.[0]?.Gateway;
    return gateway !== undefined && isOurs(gateway) ? gateway : undefined;
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}
