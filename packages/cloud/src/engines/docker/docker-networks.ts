import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { BerthError } from '../../support/errors.ts';
import type { Log } from '../../support/log.ts';
import type { InstanceNetwork } from '../instance.ts';
import { KeyedMutex } from '../../support/keyed-mutex.ts';
import type { ListedContainer, Network } from './client/docker-objects.ts';
import type { Daemon } from './daemon.ts';
import { canForward } from './forward-policy.ts';
import { isNotFound, isWrongState, daemonMessage } from './client/docker.errors.ts';
import { formatIpv4, subnetBounds } from '../../support/subnet.ts';
import { bridgeName, bridgePrefix } from './host-firewall.ts';
import type { FirewallState, HostFirewall } from './host-firewall.ts';
import { ownershipFilter, ownershipLabel } from './container-labels.ts';

/** Each account has 1,021 addresses. */
const ACCOUNT_PREFIX_BITS = 22;
/**
 * Networks are created and removed one at a time: each takes the first free addresses, and none is removed
 * while it is wanted.
 */
const ALL_NETWORKS = '';
const BRIDGE_OPTION = 'com.docker.network.bridge.name';
const ADDRESSES_IN_USE = /overlap|already in use|already used/i;

/** The network of an account. Installations that share a daemon may have accounts of the same id. */
export function accountNetworkName(installation: string, accountId: string): string {
  return `account-${createHash('sha256').update(`${installation} ${accountId}`).digest('hex').slice(0, 16)}`;
}

export function networkName(name: string): string {
  return `berth-${name}`;
}

export interface DockerNetworksDeps {
  daemon: Daemon;
  installation: string;
  log: Log | undefined;
  firewall: HostFirewall;
  /** Where the networks of accounts get their addresses. */
  accountRange: string;
}

/**
 * The networks of instances: one for each account, and one for each cluster. A network is created when its
 * first instance starts, and deleted after its last container.
 */
export class DockerNetworks {
  readonly #daemon: Daemon;
  readonly #installation: string;
  readonly #log: Log | undefined;
  readonly #firewall: HostFirewall;
  readonly #accountRange: string;
  readonly #mutex = new KeyedMutex();
  /** Starts that need a network and have no container in it yet. */
  readonly #pending = new Map<string, number>();
  #allowed: { address: string; port: number }[] = [];

  constructor({ daemon, installation, log, firewall, accountRange }: DockerNetworksDeps) {
    this.#daemon = daemon;
    this.#installation = installation;
    this.#log = log;
    this.#firewall = firewall;
    this.#accountRange = accountRange;
  }

  /** Keeps a network until it is released, so that it is not deleted before its container is created. */
  reserve(name: string): () => void {
    this.#pending.set(name, (this.#pending.get(name) ?? 0) + 1);
    return () => {
      const left = (this.#pending.get(name) ?? 1) - 1;
      if (left === 0) this.#pending.delete(name);
      else this.#pending.set(name, left);
    };
  }

  /** Creates the network of a cluster unless it exists. */
  ensure({ name, subnet }: InstanceNetwork): Promise<void> {
    return this.#mutex.runExclusive(ALL_NETWORKS, async () => {
      if (await this.#exists(name)) return;
      try {
        await this.#create(name, subnet);
      } catch (error) {
        if (isWrongState(error) && (await this.#exists(name))) return;
        const overlaps = ADDRESSES_IN_USE.test(daemonMessage(error));
        const hint = overlaps
          ? '. These addresses are in use: set another range for clusters (clusterNetwork)'
          : '';
        throw new BerthError(
          overlaps ? 'rule' : 'unavailable',
          `the network ${subnet ?? ''} of its cluster could not be created: ${daemonMessage(error)}${hint}`,
          { cause: error },
        );
      }
    });
  }

  /** Creates the network of an account unless it exists. */
  ensureAccount(name: string): Promise<void> {
    return this.#mutex.runExclusive(ALL_NETWORKS, async () => {
      if (await this.#exists(name)) return;
      const inUse = (await this.subnetsInUse()).map(subnetBounds);
      for (const subnet of this.#accountSubnets()) {
        const { from, to } = subnetBounds(subnet);
        if (inUse.some((other) => other.from <= to && from <= other.to)) continue;
        try {
          return await this.#create(name, subnet);
        } catch (error) {
          if (isWrongState(error) && (await this.#exists(name))) return;
          // Something else on the machine uses them that is no network of the daemon.
          if (ADDRESSES_IN_USE.test(daemonMessage(error))) continue;
          throw new BerthError(
            'unavailable',
            `the network of the account could not be created: ${daemonMessage(error)}`,
            { cause: error },
          );
        }
      }
      throw new BerthError(
        'capacity',
        `all addresses of ${this.#accountRange} are in use: set a larger range for the networks of ` +
          'accounts (containerNetwork)',
      );
    });
  }

  /** Of this machine, containers reach these addresses and nothing else, where the firewall is managed. */
  allow(allowed: { address: string; port: number }[]): Promise<void> {
    this.#allowed = allowed;
    return this.updateFirewall();
  }

  /** Deletes the network unless a container is attached to it, or will be. */
  removeIfEmpty(name: string): Promise<void> {
    return this.#mutex.runExclusive(ALL_NETWORKS, async () => {
      const label = ownershipFilter(this.#installation).label;
      const left = await this.#daemon.call((client) =>
        client.get<ListedContainer[]>('/containers/json', {
          all: true,
          filters: { network: [networkName(name)], label },
        }),
      );
      if (left.length > 0 || this.#pending.has(name)) return;
      await this.#remove(networkName(name));
      await this.updateFirewall();
    });
  }

  /** Deletes the networks of this installation that have no container. They are created again when needed. */
  async removeUnused(): Promise<void> {
    for (const { Name: full } of await this.#list({ label: ownershipFilter(this.#installation).label }))
      await this.removeIfEmpty(full.slice(networkName('').length));
    await this.updateFirewall();
  }

  /** Makes the firewall of this machine match the networks that exist. */
  async updateFirewall(): Promise<void> {
    if (!(await this.#daemon.isPodman())) await this.#firewall.apply(() => this.#firewallState());
  }

  async #firewallState(): Promise<Omit<FirewallState, 'installation'>> {
    const networks = await this.#list({});
    const [own] = ownershipFilter(this.#installation).label;
    const isOwn = ({ Labels: labels }: Network): boolean =>
      Object.entries(labels ?? {}).some(([name, value]) => `${name}=${value}` === own);
    const bridges = networks
      .filter(isOwn)
      .flatMap(({ Options: options }) => options?.[BRIDGE_OPTION] ?? [])
      // In another machine, or in another network namespace, the rules would be without effect.
      .filter((bridge) => existsSync(`/sys/class/net/${bridge}`))
      .sort();
    const otherSubnets = networks
      .filter((network) => !isOwn(network))
      .flatMap(ipv4Subnets)
      .sort();
    return { bridges, otherSubnets, allowed: this.#allowed };
  }

  /** The subnets of the daemon's networks, and of this machine's interfaces and routes. */
  async subnetsInUse(): Promise<string[]> {
    const networks = await this.#list({});
    const own = Object.values(networkInterfaces())
      .flatMap((addresses) => addresses ?? [])
      .flatMap(({ family, cidr }) => (family === 'IPv4' && cidr !== null ? [cidr] : []));
    return [...networks.flatMap(ipv4Subnets), ...own, ...routedSubnets()];
  }

  /** Each installation begins elsewhere: two daemons on one machine do not know of each other's networks. */
  #accountSubnets(): string[] {
    const all = [...subnetsOf(this.#accountRange)];
    const first = Number.parseInt(bridgePrefix(this.#installation).slice(-4), 16) % Math.max(1, all.length);
    return [...all.slice(first), ...all.slice(0, first)];
  }

  async #create(name: string, subnet: string | null): Promise<void> {
    const bridge = bridgeName(this.#installation, name);
    const isPodman = await this.#daemon.isPodman();
    await this.#daemon.call((client) =>
      client.post('/networks/create', {
        body: {
          Name: networkName(name),
          Driver: 'bridge',
          CheckDuplicate: true,
          EnableIPv6: false,
          Labels: ownershipLabel(this.#installation),
          IPAM: { Driver: 'default', ...(subnet !== null && { Config: [{ Subnet: subnet }] }) },
          ...(!isPodman && { Options: { [BRIDGE_OPTION]: bridge } }),
        },
      }),
    );
    await this.updateFirewall();
    if (!isPodman) await this.#warnIfBlocked(subnet, bridge);
  }

  async #warnIfBlocked(subnet: string | null, bridge: string): Promise<void> {
    if ((await canForward(bridge)) !== false) return;
    this.#log?.warn(
      { subnet, bridge },
      `this machine's firewall drops packets between the containers of a network: the FORWARD chain ` +
        `has the policy DROP and no rule for ${bridge}. Run Docker without --iptables=false, or add a ` +
        `rule: iptables -I FORWARD -i ${bridge} -o ${bridge} -j ACCEPT`,
    );
  }

  #list(filters: Record<string, string[]>): Promise<Network[]> {
    return this.#daemon.call((client) => client.get<Network[]>('/networks', { filters }));
  }

  async #exists(name: string): Promise<boolean> {
    return (await this.#list({ name: [networkName(name)] })).some(
      ({ Name: full }) => full === networkName(name),
    );
  }

  async #remove(full: string): Promise<void> {
    try {
      await this.#daemon.call((client) => client.delete(`/networks/${full}`));
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

function ipv4Subnets({ IPAM: ipam }: Network): string[] {
  return (ipam?.Config ?? []).flatMap(({ Subnet: subnet }) =>
    subnet === undefined || subnet.includes(':') ? [] : [subnet],
  );
}

/**
 * The routes of this machine, also those of interfaces without a container, which the system does not list.
 */
function routedSubnets(): string[] {
  try {
    return parseRoutes(readFileSync('/proc/net/route', 'utf8'));
  } catch {
    return [];
  }
}

/** `table` is /proc/net/route: addresses are hexadecimal, with the lowest byte first. */
export function parseRoutes(table: string): string[] {
  return table
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const [, destination = '', , , , , , mask = ''] = line.split('\t');
      if (destination.length !== 8 || mask === '00000000') return [];
      const address = [...Buffer.from(destination, 'hex')].reverse().join('.');
      const bits = [...Buffer.from(mask, 'hex')].reduce((sum, byte) => sum + countBits(byte), 0);
      return [`${address}/${bits}`];
    });
}

function countBits(byte: number): number {
  return byte.toString(2).replaceAll('0', '').length;
}

/** The networks that fit into a range, from its beginning. */
export function* subnetsOf(range: string): Generator<string> {
  const { from, to } = subnetBounds(range);
  const size = 2 ** (32 - ACCOUNT_PREFIX_BITS);
  for (let first = from; first + size - 1 <= to; first += size)
    yield `${formatIpv4(first)}/${ACCOUNT_PREFIX_BITS}`;
}
