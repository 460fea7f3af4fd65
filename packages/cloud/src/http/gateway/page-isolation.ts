import { sessionTokenOf } from '../console/session-cookie.ts';
import type { Request } from '../raw-http.ts';
import type { ForwardedPath } from './gateway-url.ts';
import type { WildcardDomain } from './wildcard-domain.ts';

/** Browsers resolve every name below it to this machine. */
export const LOCAL_DOMAIN = 'localhost';
const LOCAL_HOSTS: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * The page runs as if from an origin of its own: its scripts get neither the session nor the storage of the
 * console.
 */
export const SANDBOX = 'sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads';

/** Whether a page of a pod or worker would have the origin of a console that its reader is signed in to. */
export function isSharedWithConsole(request: Request, { prefix }: ForwardedPath): boolean {
  return prefix !== '' && sessionTokenOf(request) !== undefined;
}

/**
 * Where a browser that opens a page below `/proxy/` is sent: the same page under a host name of its own,
 * which is another origin than the console's. Undefined if there is no such name, or no browser opens a page.
 */
export function ownHostUrl(
  { method, headers }: Request,
  { label, path, prefix }: ForwardedPath & { label: string },
  domain: WildcardDomain,
): string | undefined {
  if (prefix === '' || method !== 'GET' || headers.accept?.includes('text/html') !== true) return undefined;
  if ((headers['sec-fetch-mode'] ?? 'navigate') !== 'navigate') return undefined;
  const [, host = '', port = ''] = /^(.*?)(:\d+)?$/.exec(headers.host ?? '') ?? [];
  const name = domain.name ?? (LOCAL_HOSTS.has(host.toLowerCase()) ? LOCAL_DOMAIN : undefined);
  // Without a scheme, the browser keeps the one it used.
  return name === undefined
    ? undefined
    : `//${label}.${name}${port}${path.startsWith('/') ? path : `/${path}`}`;
}
