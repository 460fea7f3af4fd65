import { isIP } from 'node:net';
import type { LookupAddress } from 'node:dns';
import { privateKind } from './address.ts';
import { systemResolve } from './resolve.ts';
import type { Resolve } from './resolve.ts';

/** Where a webhook goes: the address as it was given, and the machines that were found fit to be reached under it. */
export interface Target {
  url: URL;
  addresses: [LookupAddress, ...LookupAddress[]];
}

export interface TargetRules {
  resolve: Resolve;
  /** Why an IP address must not be reached, in words that follow "is"; undefined where it may be. */
  refusal(address: string): string | undefined;
}

/** The receiver must not be reached. The message says why and what can be done. */
export class RefusedTarget extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'RefusedTarget';
  }
}

/** In words that follow what it is. */
export const NO_CREDENTIALS =
  'has a user name or password in its address; put a token into its path or query instead';

/** No delivery would carry them. */
export function hasCredentials({ username, password }: URL): boolean {
  return username !== '' || password !== '';
}

export function targetRules(
  { allowPrivate }: { allowPrivate: boolean },
  resolve: Resolve = systemResolve(),
): TargetRules {
  return { resolve, refusal: allowPrivate ? () => undefined : privateKind };
}

/**
 * Looks a receiver up, once. Whoever connects uses the addresses in the answer and asks no
 * second time: a name that leads elsewhere a moment later leads nowhere.
 */
export async function findTarget(address: string, { resolve, refusal }: TargetRules): Promise<Target> {
  const url = URL.parse(address);
  if (url === null) throw new RefusedTarget('the webhook is not an address');
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new RefusedTarget(`the webhook is an address of ${url.protocol} and not of http: or https:`);
  if (hasCredentials(url)) throw new RefusedTarget(`the webhook ${NO_CREDENTIALS}`);
  const hostname = url.hostname.replace(/^\[|\]$/g, '');
  const family = isIP(hostname);
  const found = family === 0 ? await resolve(hostname) : [{ address: hostname, family }];
  const [first, ...others] = found.filter((candidate) => refusal(candidate.address) === undefined);
  if (first !== undefined) return { url, addresses: [first, ...others] };
  // The number behind a name is not told: it may be one that only the inside knows.
  const kind = found[0] === undefined ? undefined : refusal(found[0].address);
  if (kind === undefined) throw new RefusedTarget(`${hostname} has no address`);
  throw new RefusedTarget(
    `${hostname} ${family === 0 ? 'leads to' : 'is'} ${kind}, which webhooks do not reach unless the operator allows it with webhooks.allowPrivate`,
  );
}
