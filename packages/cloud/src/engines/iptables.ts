import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';

const TIMEOUT_MS = 10_000;
/** Waits for the lock that all users of iptables share, in seconds. */
const WAIT = ['-w', '5'];

/** The firewall of this machine; tests replace it. */
export interface Iptables {
  run(...args: readonly string[]): Promise<string>;
  /** Replaces the chains that the rules name, at once, and leaves the others. */
  restore(rules: string): Promise<void>;
}

export function systemIptables(program: 'iptables' | 'ip6tables' = 'iptables'): Iptables {
  return {
    run: async (...args) => {
      const { stdout } = await promisify(execFile)(program, [...WAIT, ...args], { timeout: TIMEOUT_MS });
      return stdout;
    },
    restore: async (rules) => {
      const child = spawn(`${program}-restore`, ['--noflush', ...WAIT], {
        stdio: ['pipe', 'ignore', 'pipe'],
        timeout: TIMEOUT_MS,
      });
      let stderr = '';
      child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
      child.stdin.on('error', () => undefined).end(rules);
      const [code] = (await once(child, 'close')) as [number | null];
      if (code !== 0) throw new Error(`${program}-restore failed: ${stderr.trim()}`);
    },
  };
}

/** Why the firewall cannot be managed from here; undefined if it can. Changes nothing. */
export async function firewallProblem(iptables: Iptables = systemIptables()): Promise<string | undefined> {
  if (process.platform !== 'linux') return 'this is not Linux';
  if (process.getuid?.() !== 0) return 'Berth does not run as root';
  try {
    await iptables.run('-S', 'INPUT');
    return undefined;
  } catch (error) {
    return `iptables cannot be used (${firstLine(error)})`;
  }
}

export function firstLine(error: unknown): string {
  const { message, stderr } = error as { message?: string; stderr?: string };
  return (stderr?.trim() || message || String(error)).split('\n')[0] ?? '';
}
