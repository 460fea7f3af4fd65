import { networkInterfaces } from 'node:os';
import { BerthError } from '../../support/errors.ts';
import type { InstanceNetwork } from '../instance.ts';
import { KeyedMutex } from '../../support/keyed-mutex.ts';
import type { Daemon } from './daemon.ts';
import { isNotFound, isWrongState, daemonMessage } from './docker.errors.ts';
import { ownershipFilter, ownershipLabel } from './container-labels.ts';

interface ListedNetwork {
  Name: string;
  IPAM?: { Config?: { Subnet?: string }[] | null };
}

export function networkName(name: string): string {
  return `berth-${name}`;
}

/** The networks that instances share. One is made when the first of its instances starts, and removed with the last container. */
export class DockerNetworks {
  readonly #daemon: Daemon;
  readonly #installation: string;
  readonly #turns = new KeyedMutex();

  constructor(daemon: Daemon, installation: string) {
    this.#daemon = daemon;
    this.#installation = installation;
  }

  /** Makes sure that it is there. */
  ensure({ name, subnet }: InstanceNetwork): Promise<void> {
    return this.#turns.runExclusive(name, async () => {
      if (await this.#isThere(name)) return;
      try {
        await this.#daemon.call((client) =>
          client.createNetwork({
            Name: networkName(name),
            Driver: 'bridge',
            CheckDuplicate: true,
            Labels: ownershipLabel(this.#installation),
            IPAM: { Driver: 'default', Config: [{ Subnet: subnet }] },
          }),
        );
      } catch (error) {
        if (isWrongState(error) && (await this.#isThere(name))) return;
        const overlaps = /overlap|already in use|already used/i.test(daemonMessage(error));
        throw new BerthError(
          overlaps ? 'rule' : 'unavailable',
          `the network ${subnet} of its cluster could not be made: ${daemonMessage(error)}${overlaps ? '. Something else has these addresses: give clusters another range (clusterNetwork)' : ''}`,
          { cause: error },
        );
      }
    });
  }

  /** Removes it, unless a container is still in it. */
  removeIfEmpty(name: string): Promise<void> {
    return this.#turns.runExclusive(name, async () => {
      const label = ownershipFilter(this.#installation).label;
      const left = await this.#daemon.call((client) =>
        client.listContainers({ all: true, filters: { network: [networkName(name)], label } }),
      );
      if (left.length === 0) await this.#remove(networkName(name));
    });
  }

  /** Removes those of this installation that no container is in: whoever starts in one makes it again. */
  async removeUnused(): Promise<void> {
    for (const { Name: full } of await this.#list({ label: ownershipFilter(this.#installation).label }))
      await this.removeIfEmpty(full.slice(networkName('').length));
  }

  /** Those of the daemon, and those that this machine is in. */
  async subnetsInUse(): Promise<string[]> {
    const networks = await this.#list({});
    const own = Object.values(networkInterfaces())
      .flatMap((addresses) => addresses ?? [])
      .flatMap(({ family, cidr }) => (family === 'IPv4' && cidr !== null ? [cidr] : []));
    return [
      ...networks.flatMap(({ IPAM: ipam }) =>
        (ipam?.Config ?? []).flatMap(({ Subnet: subnet }) => subnet ?? []),
      ),
      ...own,
    ];
  }

  #list(filters: Record<string, string[]>): Promise<ListedNetwork[]> {
    return this.#daemon.call((client) => client.listNetworks({ filters }) as Promise<ListedNetwork[]>);
  }

  async #isThere(name: string): Promise<boolean> {
    return (await this.#list({ name: [networkName(name)] })).some(
      ({ Name: full }) => full === networkName(name),
    );
  }

  async #remove(full: string): Promise<void> {
    try {
      await this.#daemon.call((client) => client.getNetwork(full).remove());
    } catch (error) {
      // Somebody came in or removed it meanwhile.
      if (
        !isNotFound(error) &&
        !isWrongState(error) &&
        !/active endpoints|being used|in use/i.test(daemonMessage(error))
      )
        throw error;
    }
  }
}
