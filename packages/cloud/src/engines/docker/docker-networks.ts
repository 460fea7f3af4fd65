import { networkInterfaces } from 'node:os';
import { BerthError } from '../../support/errors.ts';
import type { Log } from '../../support/log.ts';
import type { InstanceNetwork } from '../instance.ts';
import { KeyedMutex } from '../../support/keyed-mutex.ts';
import type { Daemon } from './daemon.ts';
import { canForward } from './forward-policy.ts';
import { isNotFound, isWrongState, daemonMessage } from './docker.errors.ts';
import { ownershipFilter, ownershipLabel } from './container-labels.ts';

interface ListedNetwork {
  Name: string;
  IPAM?: { Config?: { Subnet?: string }[] | null };
}

export function networkName(name: string): string {
  return `berth-${name}`;
}

/**
 * Networks that instances share. One is created when its first instance starts, and deleted after its last
 * container.
 */
export class DockerNetworks {
  readonly #daemon: Daemon;
  readonly #installation: string;
  readonly #log: Log | undefined;
  readonly #mutex = new KeyedMutex();

  constructor(daemon: Daemon, installation: string, log: Log | undefined) {
    this.#daemon = daemon;
    this.#installation = installation;
    this.#log = log;
  }

  /** Creates the network unless it exists. */
  ensure({ name, subnet }: InstanceNetwork): Promise<void> {
    return this.#mutex.runExclusive(name, async () => {
      if (await this.#exists(name)) return;
      try {
        const { id } = await this.#daemon.call((client) =>
          client.createNetwork({
            Name: networkName(name),
            Driver: 'bridge',
            CheckDuplicate: true,
            Labels: ownershipLabel(this.#installation),
            IPAM: { Driver: 'default', Config: [{ Subnet: subnet }] },
          }),
        );
        await this.#warnIfBlocked(subnet, `br-${id.slice(0, 12)}`);
      } catch (error) {
        if (isWrongState(error) && (await this.#exists(name))) return;
        const overlaps = /overlap|already in use|already used/i.test(daemonMessage(error));
        throw new BerthError(
          overlaps ? 'rule' : 'unavailable',
          `the network ${subnet} of its cluster could not be created: ${daemonMessage(error)}${overlaps ? '. These addresses are in use: set another range for clusters (clusterNetwork)' : ''}`,
          { cause: error },
        );
      }
    });
  }

  /** Deletes the network unless a container is attached to it. */
  removeIfEmpty(name: string): Promise<void> {
    return this.#mutex.runExclusive(name, async () => {
      const label = ownershipFilter(this.#installation).label;
      const left = await this.#daemon.call((client) =>
        client.listContainers({ all: true, filters: { network: [networkName(name)], label } }),
      );
      if (left.length === 0) await this.#remove(networkName(name));
    });
  }

  /** Deletes the networks of this installation that have no container. They are created again when needed. */
  async removeUnused(): Promise<void> {
    for (const { Name: full } of await this.#list({ label: ownershipFilter(this.#installation).label }))
      await this.removeIfEmpty(full.slice(networkName('').length));
  }

  /** The subnets of the daemon's networks and of this machine's interfaces. */
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

  async #warnIfBlocked(subnet: string, bridge: string): Promise<void> {
    if ((await canForward(bridge)) !== false) return;
    this.#log?.warn(
      { subnet, bridge },
      `this machine's firewall drops packets between the containers of a cluster: the FORWARD chain has the policy DROP and no rule for ${bridge}. Run Docker without --iptables=false, or add a rule: iptables -I FORWARD -i br-+ -o br-+ -j ACCEPT`,
    );
  }

  #list(filters: Record<string, string[]>): Promise<ListedNetwork[]> {
    return this.#daemon.call((client) => client.listNetworks({ filters }) as Promise<ListedNetwork[]>);
  }

  async #exists(name: string): Promise<boolean> {
    return (await this.#list({ name: [networkName(name)] })).some(
      ({ Name: full }) => full === networkName(name),
    );
  }

  async #remove(full: string): Promise<void> {
    try {
      await this.#daemon.call((client) => client.getNetwork(full).remove());
    } catch (error) {
      // A container was attached, or it is deleted already.
      if (
        !isNotFound(error) &&
        !isWrongState(error) &&
        !/active endpoints|being used|in use/i.test(daemonMessage(error))
      )
        throw error;
    }
  }
}
