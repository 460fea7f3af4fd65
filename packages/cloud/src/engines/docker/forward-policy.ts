import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';

const IPTABLES_TIMEOUT_MS = 3_000;

/**
 * Whether this machine's firewall lets packets pass between two containers on a bridge. Docker adds
 * rules for each of its bridges, unless it runs with `--iptables=false`. The policy DROP that an
 * earlier daemon left on the FORWARD chain then stops everything between containers.
 * Undefined if that cannot be found out: another machine, no iptables, or not permitted.
 */
export async function canForward(bridge: string): Promise<boolean | undefined> {
  if (!existsSync(`/sys/class/net/${bridge}`)) return undefined;
  try {
    const { stdout } = await promisify(execFile)('iptables', ['-S'], { timeout: IPTABLES_TIMEOUT_MS });
    return rulesAllowForwarding(stdout, bridge);
  } catch {
    return undefined;
  }
}

/** `rules` is what `iptables -S` prints. */
export function rulesAllowForwarding(rules: string, bridge: string): boolean {
  const lines = rules.split('\n');
  if (!lines.includes('-P FORWARD DROP')) return true;
  return lines.some((line) => {
    const isAccepted = /^-A FORWARD .*-j ACCEPT$/.test(line) && !/--(ctstate|state) /.test(line);
    const input = /(?:^| )-i (\S+)/.exec(line)?.[1];
    if (input === undefined) return isAccepted;
    // A rule in a chain of Docker's that names the bridge: Docker manages the rules of this bridge.
    if (input === bridge) return true;
    return isAccepted && input.endsWith('+') && bridge.startsWith(input.slice(0, -1));
  });
}
