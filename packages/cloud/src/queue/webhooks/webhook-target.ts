import { isIP } from 'node:net';
import type { LookupAddress } from 'node:dns';
import { privateAddressReason } from './private-addresses.ts';
import { createHostResolver } from './host-resolver.ts';
import type { ResolveHost } from './host-resolver.ts';

/** Where a webhook goes: the URL as given, and the resolved addresses that may be reached. */
export interface WebhookTarget {
  url: URL;
  addresses: [LookupAddress, ...LookupAddress[]];
}

export interface TargetPolicy {
  resolve: ResolveHost;
  /** Why an IP address must not be reached, in words that follow "is"; undefined where it may be. */
  refusal(address: string): string | undefined;
}

/** The receiver must not be reached. The message says why and what can be done. */
export class TargetRefusedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'RefusedTarget';
  }
}

/** In words that follow what it is. */
export const CREDENTIALS_NOT_ALLOWED =
  'has a user name or password in its address; put a token into its path or query instead';

/** No delivery would carry them. */
export function hasCredentials({ username, password }: URL): boolean {
  return username !== '' || password !== '';
}

export function createTargetPolicy(
  { allowPrivate }: { allowPrivate: boolean },
  resolve: ResolveHost = createHostResolver(),
): TargetPolicy {
  return { resolve, refusal: allowPrivate ? () => undefined : privateAddressReason };
}

/**
 * Resolves a receiver once. The connection uses the returned addresses and does not resolve again, so a name
 * that resolves differently a moment later has no effect.
 */
export async function resolveTarget(
  address: string,
  { resolve, refusal }: TargetPolicy,
): Promise<WebhookTarget> {
  const url = URL.parse(address);
  if (url === null) throw new TargetRefusedError('the webhook is not an address');
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new TargetRefusedError(`the webhook is an address of ${url.protocol} and not of http: or https:`);
  if (hasCredentials(url)) throw new TargetRefusedError(`the webhook ${CREDENTIALS_NOT_ALLOWED}`);
  const hostname = url.hostname.replace(/^\[|\]$/g, '');
  const family = isIP(hostname);
  const found = family === 0 ? await resolve(hostname) : [{ address: hostname, family }];
  const [first, ...others] = found.filter((candidate) => refusal(candidate.address) === undefined);
  if (first !== undefined) return { url, addresses: [first, ...others] };
  // The address behind a name is not revealed: it may be known only inside.
  const kind = found[0] === undefined ? undefined : refusal(found[0].address);
  if (kind === undefined) throw new TargetRefusedError(`${hostname} has no address`);
  throw new TargetRefusedError(
    `${hostname} ${family === 0 ? 'leads to' : 'is'} ${kind}, which webhooks do not reach unless the ` +
      'operator allows it with webhooks.allowPrivate',
  );
}
