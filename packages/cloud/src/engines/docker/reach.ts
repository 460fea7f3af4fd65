import { HOST_NAME_INSIDE } from './container-options.ts';
import type { Daemon } from './daemon.ts';
import { isGone } from './failure.ts';
import { isOurs } from './listening.ts';

/** The network that containers are in when nothing else is said: Docker's name for it, and Podman's. */
const NETWORKS = ['bridge', 'podman'];
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/;

/** An address of this machine as containers have to write it. */
export function urlInside(url: string): string {
  const address = new URL(url);
  if (!LOOPBACK.test(address.hostname)) return url;
  address.hostname = HOST_NAME_INSIDE;
  return address.href.replace(/\/$/, url.endsWith('/') ? '/' : '');
}

/**
 * This machine's address in the containers' network. A server that listens on the loopback alone
 * has to listen here too, for containers to reach it. Undefined where the machine has no such
 * address: then containers live in a virtual machine, which brings them to the loopback by itself.
 */
export async function addressForContainers(daemon: Daemon): Promise<string | undefined> {
  for (const name of NETWORKS) {
    try {
      const { IPAM: ipam } = (await daemon.ask((client) => client.getNetwork(name).inspect() as Promise<{ IPAM?: { Config?: { Gateway?: string }[] | null } }>));
      const gateway = ipam?.Config?.[0]?.Gateway;
      if (gateway !== undefined && isOurs(gateway)) return gateway;
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }
  return undefined;
}
