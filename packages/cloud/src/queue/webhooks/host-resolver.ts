import { lookup as lookupInSystem, Resolver } from 'node:dns/promises';
import type { LookupAddress } from 'node:dns';

/** Finds the addresses of a host name. */
export type ResolveHost = (hostname: string) => Promise<LookupAddress[]>;

const DNS_TIMEOUT_MS = 2_500;
const DNS_TRIES = 2;

/** The name server has no record, or there is no name server. */
const NOT_FOUND_CODES = new Set([
  'ENOTFOUND',
  'ENODATA',
  'ECONNREFUSED',
  'EBADNAME',
  'EREFUSED',
  'ESERVFAIL',
]);

/**
 * Asks the name servers directly. The system's own lookup holds one of a few threads until it is done, so a
 * handful of receivers with a dead name server would block every other lookup in this process. It is used
 * only for names that name servers do not know: names without a dot, and those of the hosts file.
 */
export function createHostResolver(): ResolveHost {
  const servers = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES });
  return async (hostname) => {
    if (!isDomainName(hostname)) return lookupInSystem(hostname, { all: true });
    const [ipv4, ipv6] = await Promise.allSettled([servers.resolve4(hostname), servers.resolve6(hostname)]);
    const found: LookupAddress[] = [
      ...(ipv4.status === 'fulfilled' ? ipv4.value.map((address) => ({ address, family: 4 })) : []),
      ...(ipv6.status === 'fulfilled' ? ipv6.value.map((address) => ({ address, family: 6 })) : []),
    ];
    if (found.length > 0) return found;
    if (ipv4.status === 'rejected' && !isNotFound(ipv4.reason)) throw ipv4.reason as Error;
    return lookupInSystem(hostname, { all: true });
  };
}

function isDomainName(hostname: string): boolean {
  return hostname.replace(/\.$/, '').includes('.') && !/\.(localhost|local)\.?$/.test(hostname);
}

function isNotFound(reason: unknown): boolean {
  return reason instanceof Error && 'code' in reason && NOT_FOUND_CODES.has(String(reason.code));
}
