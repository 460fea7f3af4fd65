import { createHash } from 'node:crypto';
import type { Log } from '../../support/log.ts';
import { firewallProblem, firstLine, systemIptables } from '../iptables.ts';
import type { Iptables } from '../iptables.ts';

/** Metadata services of clouds, which hand out the machine's own credentials. */
const LINK_LOCAL = '169.254.0.0/16';
/** Where Docker leaves room for the rules of others. It comes before Docker's own. */
const DOCKER_CHAIN = 'DOCKER-USER';

export interface FirewallState {
  installation: string;
  /** The bridges of Berth's networks on this machine. */
  bridges: readonly string[];
  /** Addresses of this machine, with a TCP port, that containers may reach: Berth's own. */
  allowed: readonly { address: string; port: number }[];
  /** The subnets of the daemon's other networks. */
  otherSubnets: readonly string[];
}

/** Every bridge of an installation begins with this. An interface's name has at most 15 characters. */
export function bridgePrefix(installation: string): string {
  return `bt${shortHash(installation, 4)}`;
}

export function bridgeName(installation: string, network: string): string {
  return bridgePrefix(installation) + shortHash(network, 8);
}

function shortHash(text: string, length: number): string {
  return createHash('sha256').update(text).digest('hex').slice(0, length);
}

function chains(installation: string): { input: string; forward: string } {
  const id = shortHash(installation, 4);
  return { input: `BERTH-IN-${id}`, forward: `BERTH-FWD-${id}` };
}

/**
 * The rules as `iptables-restore --noflush` reads them; it replaces both chains at once. Of the machine,
 * containers reach what is allowed and nothing else; of other networks on it, nothing. The internet stays
 * open.
 */
export function firewallRules({ installation, bridges, allowed, otherSubnets }: FirewallState): string {
  const { input, forward } = chains(installation);
  const any = `${bridgePrefix(installation)}+`;
  const comment = (text: string): string => `-m comment --comment "berth ${installation}: ${text}"`;
  return [
    '*filter',
    `:${input} - [0:0]`,
    `:${forward} - [0:0]`,
    `-A ${input} -m conntrack --ctstate ESTABLISHED,RELATED ${comment('answers')} -j ACCEPT`,
    ...allowed.map(
      ({ address, port }) =>
        `-A ${input} -d ${address}/32 -p tcp -m tcp --dport ${port} ${comment('the worker listener')} -j ACCEPT`,
    ),
    `-A ${input} ${comment('nothing else of this machine')} -j REJECT`,
    // Before the answers: where bridged packets pass through iptables (br_netfilter), RETURN leaves answers
    // within a
    // network to the policy of the chain, which Docker sets to DROP.
    ...bridges.map((bridge) => `-A ${forward} -i ${bridge} -o ${bridge} ${comment('one account')} -j ACCEPT`),
    `-A ${forward} -m conntrack --ctstate ESTABLISHED,RELATED ${comment('answers')} -j RETURN`,
    `-A ${forward} -i ${any} -o ${any} ${comment('other accounts')} -j REJECT`,
    ...[LINK_LOCAL, ...otherSubnets].map(
      (subnet) => `-A ${forward} -i ${any} -d ${subnet} ${comment('not the internet')} -j REJECT`,
    ),
    ...['docker0', 'br-+'].map(
      (bridge) => `-A ${forward} -i ${any} -o ${bridge} ${comment('other containers')} -j REJECT`,
    ),
    `-A ${forward} -o ${any} ${comment('from outside')} -j DROP`,
    'COMMIT',
    '',
  ].join('\n');
}

/**
 * The rules of this machine's firewall for one installation: two chains, and a jump to each. They stay while
 * Berth is down, as the containers do, and go with the last network.
 */
export class HostFirewall {
  readonly #installation: string;
  readonly #log: Log | undefined;
  readonly #iptables: Iptables;
  #problem: Promise<string | undefined> | undefined;
  #applied = '';
  #queue: Promise<void> = Promise.resolve();

  constructor(installation: string, log: Log | undefined, iptables: Iptables = systemIptables()) {
    this.#installation = installation;
    this.#log = log;
    this.#iptables = iptables;
  }

  /** Looked for once; the log says what remains open. */
  problem(): Promise<string | undefined> {
    this.#problem ??= firewallProblem(this.#iptables).then((problem) => {
      if (problem !== undefined) this.#warn(problem);
      return problem;
    });
    return this.#problem;
  }

  /**
   * Makes the rules so. Without bridges there are none. The state is read when its turn comes: an older one
   * never follows a newer one.
   */
  apply(readState: () => Promise<Omit<FirewallState, 'installation'>>): Promise<void> {
    this.#queue = this.#queue
      .then(async () => this.#apply(await readState()))
      .catch((error: unknown) => {
        this.#applied = '';
        this.#warn(firstLine(error));
      });
    return this.#queue;
  }

  async #apply(state: Omit<FirewallState, 'installation'>): Promise<void> {
    if ((await this.problem()) !== undefined) return;
    if (state.bridges.length === 0) return this.#remove();
    const rules = firewallRules({ installation: this.#installation, ...state });
    if (rules !== this.#applied) await this.#iptables.restore(rules);
    for (const [chain, rule] of await this.#jumps())
      await this.#iptables
        .run('-C', chain, ...rule)
        .catch(() => this.#iptables.run('-I', chain, '1', ...rule));
    this.#applied = rules;
  }

  async #remove(): Promise<void> {
    this.#applied = '';
    for (const [chain, rule] of await this.#jumps())
      await this.#iptables.run('-D', chain, ...rule).catch(() => undefined);
    for (const chain of Object.values(chains(this.#installation))) {
      await this.#iptables.run('-F', chain).catch(() => undefined);
      await this.#iptables.run('-X', chain).catch(() => undefined);
    }
  }

  async #jumps(): Promise<[chain: string, rule: string[]][]> {
    const { input, forward } = chains(this.#installation);
    const any = `${bridgePrefix(this.#installation)}+`;
    const comment = ['-m', 'comment', '--comment', `berth ${this.#installation}`];
    const forwarding = await this.#iptables.run('-S', DOCKER_CHAIN).then(
      () => DOCKER_CHAIN,
      () => 'FORWARD',
    );
    return [
      ['INPUT', ['-i', any, ...comment, '-j', input]],
      [forwarding, ['-i', any, ...comment, '-j', forward]],
      [forwarding, ['-o', any, ...comment, '-j', forward]],
    ];
  }

  #warn(reason: string): void {
    this.#log?.warn(
      { reason },
      'the firewall of this machine is not managed: containers reach the ports of this machine and, ' +
        'unless the Docker daemon separates its networks, those of other accounts; see docs/isolation.md',
    );
  }
}
