import { BerthError } from '../../support/errors.ts';
import { formatIpv4, subnetBounds } from '../../support/subnet.ts';

/**
 * The network of a cluster is a block of 256 addresses, and each member has a fixed one. Where
 * instances have networks of their own, the block is taken from a range that the operator may
 * choose. Where they share the machine's, it is taken from its loopback addresses: each member
 * can listen there on whatever port it likes without meeting the others.
 */
export const LOOPBACK_RANGE = '127.65.0.0/16';
/** The first address is the machine's own in that network. */
const FIRST_MEMBER_OFFSET = 2;
const BLOCK_BITS = 24;
const BLOCK_SIZE = 256;

/** The first node's port that members meet at. */
const RENDEZVOUS_PORT = 29_400;

/**
 * A free block of the range. Where to begin depends on the cluster's id, so that two installations
 * on one machine, which do not know of each other, seldom choose the same.
 */
export function freeSubnet(clusterId: string, range: string, taken: readonly string[]): string {
  const { from, to } = subnetBounds(range);
  const blocks = Math.floor((to - from + 1) / BLOCK_SIZE);
  const used = taken.map(subnetBounds);
  const start =
    [...clusterId].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 65_521, 0) % blocks;
  for (let tries = 0; tries < blocks; tries += 1) {
    const first = from + ((start + tries) % blocks) * BLOCK_SIZE;
    if (!used.some((one) => one.from <= first + BLOCK_SIZE - 1 && one.to >= first))
      return `${formatIpv4(first)}/${BLOCK_BITS}`;
  }
  throw new BerthError(
    'capacity',
    `all ${blocks} networks in ${range} are in use; delete a cluster, or give clusters a larger range (clusterNetwork)`,
  );
}

export function memberAddress(subnet: string, rank: number): string {
  return formatIpv4(subnetBounds(subnet).from + FIRST_MEMBER_OFFSET + rank);
}

/** The host name of a member, for the others. */
export function memberHostName(rank: number): string {
  return `node-${rank}`;
}

/**
 * On shared loopback addresses a program that listens on all of them would meet that of another cluster, so
 * each has a number of its own.
 */
export function rendezvousPort(subnet: string | null, shared: boolean): number {
  return (
    RENDEZVOUS_PORT +
    (shared && subnet !== null ? Math.floor(subnetBounds(subnet).from / BLOCK_SIZE) % BLOCK_SIZE : 0)
  );
}
