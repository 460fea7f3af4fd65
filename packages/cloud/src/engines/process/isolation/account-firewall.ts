import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { Log } from '../../../support/log.ts';
import type { UserRange } from '../../../support/user-range.ts';
import { firewallProblem, firstLine, systemIptables } from '../../iptables.ts';
import type { Iptables } from '../../iptables.ts';
import { POOL_RANGE } from '../../port-pool.ts';

/** Services that hand out the machine's own credentials in clouds. */
const METADATA = { 4: '169.254.0.0/16', 6: 'fd00:ec2::254/128' } as const;
/** Networks of containers, Berth's own and others. */
const CONTAINER_BRIDGES = ['bt+', 'docker0', 'br-+'];
/** The upper bits of a connection's mark say that an account began it, the lower ones which user. */
const MARK = 0x42 << 24;
const USER_BITS = 0xff_ffff;
const MARKED = `0x${MARK.toString(16)}/0x${(~USER_BITS >>> 0).toString(16)}`;
const COMMENT = 'berth accounts';
const ANSWER = '-p tcp -m tcp --tcp-flags SYN,ACK SYN,ACK';
/** A path that iptables prints as it was given. */
const PLAIN_PATH = /^[\w./-]{1,200}$/;

export interface FirewallRulesOptions {
  chain: string;
  version: 4 | 6;
  uids: readonly number[];
  /** Ports of Berth itself, which accounts reach. */
  ownPorts?: readonly number[];
}

/**
 * The rules for packets of accounts' processes, as `iptables-restore --noflush` reads them.
 *
 * Processes share the network of the machine, loopback too. Who listens on a port is known when it answers: a
 * connection that an account begins is marked with its user, and an answer by the process of another account
 * is dropped, so the connection is never made. Of the root account's processes, which run as root, only the
 * answers from ports of instances come here. Datagrams have no answer to wait for: on loopback, accounts
 * send them to a name server only.
 */
export function accountFirewallRules({ chain, version, uids, ownPorts = [] }: FirewallRulesOptions): string {
  const rules = [
    '-p udp -m udp --dport 53 -j RETURN',
    ...(version === 4 ? [`-d ${METADATA[4]} -p tcp -m tcp --dport 53 -j RETURN`] : []),
    `-d ${METADATA[version]} -j REJECT`,
    ...CONTAINER_BRIDGES.map((bridge) => `-o ${bridge} -j REJECT`),
    '! -o lo -j RETURN',
    '-p udp -j REJECT',
    ...uids.flatMap((uid) => [
      `-p tcp -m tcp --syn -m owner --uid-owner ${uid} -j CONNMARK --set-mark ${markOf(uid)}`,
      `${ANSWER} -m owner --uid-owner ${uid} -m connmark --mark ${markOf(uid)} -j RETURN`,
    ]),
    ...ownPorts.map((port) => `${ANSWER} -m owner --uid-owner 0 -m tcp --sport ${port} -j RETURN`),
    `${ANSWER} -m connmark --mark ${MARKED} -j DROP`,
  ];
  return ['*filter', `:${chain} - [0:0]`, ...rules.map((rule) => `-A ${chain} ${rule}`), 'COMMIT', ''].join(
    '\n',
  );
}

function markOf(uid: number): string {
  return `0x${(MARK | (uid & USER_BITS)).toString(16)}`;
}

export interface AccountFirewallOptions {
  /** Berth's data folder. */
  data: string;
  range: UserRange;
  /** Ports of Berth itself, which accounts reach. */
  ownPorts?: readonly number[] | undefined;
  log?: Log | undefined;
  iptables?: Record<4 | 6, Iptables>;
}

/**
 * Closes the ports of one account to the processes of others, and the metadata service of a cloud to all of
 * them. The rules stay while Berth is down, as the processes do.
 */
export class AccountFirewall {
  readonly #options: AccountFirewallOptions;
  readonly #iptables: Record<4 | 6, Iptables>;
  readonly #chain: string;
  readonly #jumps: readonly (readonly string[])[];
  readonly #uids = new Set<number>();
  #problem: Promise<string | undefined> | undefined;
  #queue: Promise<void> = Promise.resolve();
  #isApplied = false;

  constructor(options: AccountFirewallOptions) {
    const { data, range, iptables } = options;
    this.#options = options;
    this.#iptables = iptables ?? { 4: systemIptables(), 6: systemIptables('ip6tables') };
    this.#chain = `BERTH-OUT-${createHash('sha256').update(data).digest('hex').slice(0, 8)}`;
    const answer = [...ANSWER.split(' '), '--sport', POOL_RANGE, '-m', 'connmark', '--mark', MARKED];
    const comment = ['-m', 'comment', '--comment', PLAIN_PATH.test(data) ? `${COMMENT} ${data}` : COMMENT];
    this.#jumps = [
      ['-m', 'owner', '--uid-owner', `${range.first}-${range.last}`, ...comment, '-j', this.#chain],
      [...answer, '-m', 'owner', '--uid-owner', '0', ...comment, '-j', this.#chain],
    ];
  }

  /**
   * Resolves when the rules apply to this user, whose processes start after that. `known` are the users of
   * all accounts.
   */
  add(uid: number, known: () => readonly number[]): Promise<void> {
    if (this.#uids.has(uid)) return this.#queue;
    for (const other of [uid, ...known()]) this.#uids.add(other);
    this.#queue = this.#queue
      .then(() => this.#apply())
      .catch((error: unknown) => this.#warn(firstLine(error)));
    return this.#queue;
  }

  /** Removes the rules, when no process of any account runs any more. */
  async remove(): Promise<void> {
    await this.#queue;
    if (!this.#isApplied) return;
    for (const version of versions()) await removeChain(this.#iptables[version], this.#chain, this.#jumps);
  }

  async #apply(): Promise<void> {
    this.#problem ??= firewallProblem(this.#iptables[4]).then((problem) => {
      if (problem !== undefined) this.#warn(problem);
      return problem;
    });
    if ((await this.#problem) !== undefined) return;
    const uids = [...this.#uids].sort((one, other) => one - other);
    for (const version of versions()) {
      const iptables = this.#iptables[version];
      const { ownPorts = [] } = this.#options;
      await iptables.restore(accountFirewallRules({ chain: this.#chain, version, uids, ownPorts }));
      if (this.#isApplied) continue;
      for (const jump of this.#jumps)
        await iptables.run('-C', 'OUTPUT', ...jump).catch(() => iptables.run('-I', 'OUTPUT', '1', ...jump));
      await removeOrphans(iptables);
    }
    this.#isApplied = true;
  }

  #warn(reason: string): void {
    this.#options.log?.warn(
      { reason },
      'the firewall of this machine is not managed: processes of one account reach the ports of others ' +
        'on this machine, and the metadata service of the cloud; see docs/isolation.md',
    );
  }
}

function versions(): (4 | 6)[] {
  return existsSync('/proc/net/if_inet6') ? [4, 6] : [4];
}

/** Rules of servers that were killed, and whose data folder is gone. */
async function removeOrphans(iptables: Iptables): Promise<void> {
  for (const line of (await iptables.run('-S', 'OUTPUT')).split('\n')) {
    const [, rule, data, chain] =
      /^-A OUTPUT (.*--comment "berth accounts (\/[^"]+)" -j (BERTH-OUT-\w+))$/.exec(line) ?? [];
    if (rule === undefined || data === undefined || chain === undefined || existsSync(data)) continue;
    const words = rule.match(/"[^"]*"|\S+/g) ?? [];
    await removeChain(iptables, chain, [words.map((word) => word.replaceAll('"', ''))]);
  }
}

async function removeChain(
  iptables: Iptables,
  chain: string,
  jumps: readonly (readonly string[])[],
): Promise<void> {
  // Another server may have removed it. A chain stays until the last rule that jumps to it is gone.
  for (const command of [...jumps.map((jump) => ['-D', 'OUTPUT', ...jump]), ['-F', chain], ['-X', chain]])
    await iptables.run(...command).catch(() => undefined);
}
