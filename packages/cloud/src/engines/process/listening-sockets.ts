import { existsSync, readFileSync } from 'node:fs';
import type { InstanceAddress } from '../instance.ts';
import { socketsOf } from './process-table.ts';

interface ListeningSocket extends InstanceAddress {
  inode: number;
}

const LISTENING = '0A';
/** How long one reading of the tables is shared. */
const CACHE_TTL_MS = 50;
/** IPv4-mapped IPv6 addresses. */
const MAPPED = /^0{20}ffff([0-9a-f]{8})$/;

/**
 * The address where one of these processes listens, for the first port in the list that has one. The owner of
 * the socket is checked: all instances share the host's ports, so another one may listen on the same port.
 */
export function findListeningSocket(
  ports: readonly number[],
  processes: () => readonly number[],
): InstanceAddress | undefined {
  const candidates = ports.flatMap((port) => listeningSockets().get(port) ?? []);
  if (candidates.length === 0) return undefined;
  const sockets = new Set(processes().flatMap(socketsOf));
  const owned = candidates.filter(({ inode }) => sockets.has(inode));
  const best = owned.sort((one, other) => ports.indexOf(one.port) - ports.indexOf(other.port))[0];
  return best === undefined ? undefined : { host: best.host, port: best.port };
}

let last: { at: number; byPort: ReadonlyMap<number, readonly ListeningSocket[]> } | undefined;

/** All listening sockets of this machine, by port. The result is cached. */
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

/** Parses `/proc/net/tcp` and keeps the listening sockets. */
export function parseTcpTable(text: string): ListeningSocket[] {
  return text
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const [, local = '', , state, , , , , , inode] = line.trim().split(/\s+/);
      const [address = '', port = ''] = local.split(':');
      return state === LISTENING
        ? [{ host: connectableHost(address), port: Number.parseInt(port, 16), inode: Number(inode) }]
        : [];
    });
}

/**
 * The address to connect to from this host: wildcard addresses become the loopback address. The kernel writes
 * each group of four bytes in reverse order.
 */
function connectableHost(hex: string): string {
  const bytes = (hex.match(/.{8}/g) ?? [])
    .map((group) => (group.match(/../g) ?? []).reverse().join(''))
    .join('')
    .toLowerCase();
  const ipv4 = hex.length === 8 ? bytes : MAPPED.exec(bytes)?.[1];
  if (ipv4 !== undefined)
    return ipv4 === '00000000'
      ? '127.0.0.1'
      : (ipv4.match(/../g) ?? []).map((byte) => Number.parseInt(byte, 16)).join('.');
  return /^0+$/.test(bytes) ? '::1' : (bytes.match(/.{4}/g) ?? []).join(':');
}
