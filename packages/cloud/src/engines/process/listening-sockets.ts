import { existsSync, readFileSync } from 'node:fs';
import type { InstanceAddress } from '../instance.ts';
import { socketsOf } from './process-table.ts';

interface ListeningSocket extends InstanceAddress {
  inode: number;
}

const LISTENING = '0A';
/** How old a look at the machine may be that many share. */
const CACHE_TTL_MS = 50;
/** IPv4 addresses in IPv6 clothes. */
const MAPPED = /^0{20}ffff([0-9a-f]{8})$/;

/**
 * Where one of these processes listens, on the first of these ports that it does. Whose socket
 * it is counts: with all on one machine, somebody else may listen on the same number.
 */
export function findListeningSocket(
  ports: readonly number[],
  processes: () => readonly number[],
): InstanceAddress | undefined {
  const candidates = ports.flatMap((port) => listeningSockets().get(port) ?? []);
  if (candidates.length === 0) return undefined;
  const sockets = new Set(processes().flatMap(socketsOf));
  const own = candidates.filter(({ inode }) => sockets.has(inode));
  const best = own.sort((one, other) => ports.indexOf(one.port) - ports.indexOf(other.port))[0];
  return best === undefined ? undefined : { host: best.host, port: best.port };
}

let last: { at: number; byPort: ReadonlyMap<number, readonly ListeningSocket[]> } | undefined;

/** All that listen on this machine, by port: one look for all who ask within a moment. */
function listeningSockets(): ReadonlyMap<number, readonly ListeningSocket[]> {
  const now = performance.now();
  if (last === undefined || now - last.at >= CACHE_TTL_MS) {
    const all = ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((table) =>
      existsSync(table) ? parseTcpTable(readFileSync(table, 'utf8')) : [],
    );
    last = { at: now, byPort: Map.groupBy(all, ({ port }) => port) };
  }
  return last.byPort;
}

/** The kernel's list of TCP sockets: those that listen. */
export function parseTcpTable(text: string): ListeningSocket[] {
  return text
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const [, local = '', , state, , , , , , inode] = line.trim().split(/\s+/);
      const [address = '', port = ''] = local.split(':');
      return state === LISTENING
        ? [{ host: reachable(address), port: Number.parseInt(port, 16), inode: Number(inode) }]
        : [];
    });
}

/** The address as one connects to it from here: whoever listens everywhere is reached on the loopback. Each group of four bytes is written backwards. */
function reachable(hex: string): string {
  const bytes = (hex.match(/.{8}/g) ?? [])
    .map((group) => (group.match(/../g) ?? []).reverse().join(''))
    .join('')
    .toLowerCase();
  const four = hex.length === 8 ? bytes : MAPPED.exec(bytes)?.[1];
  if (four !== undefined)
    return four === '00000000'
      ? '127.0.0.1'
      : (four.match(/../g) ?? []).map((byte) => Number.parseInt(byte, 16)).join('.');
  return /^0+$/.test(bytes) ? '::1' : (bytes.match(/.{4}/g) ?? []).join(':');
}
