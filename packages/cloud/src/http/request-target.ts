import type { Request } from './raw-http.ts';

const SLASH = 0x2f;
/** Scheme and authority; a user name and a password in it are ignored. */
const BEFORE_PATH = /^https?:\/\/(?:[^/?#@]*@)?([^/?#@]+)/i;

/**
 * A request may name its target with scheme and host, as it would to a proxy, and a server has to
 * accept that (RFC 9112, 3.2.2). Removes them, so that the routes see a path. The host of the target
 * replaces the Host header.
 */
export function convertToOriginForm(request: Request): void {
  const { url = '' } = request;
  if (url.charCodeAt(0) === SLASH) return;
  const [before, host] = BEFORE_PATH.exec(url) ?? [];
  if (before === undefined || host === undefined) return;
  const rest = url.slice(before.length);
  request.url = rest.charCodeAt(0) === SLASH ? rest : `/${rest}`;
  setHost(request, host);
}

function setHost({ headers, rawHeaders }: Request, host: string): void {
  headers.host = host;
  const at = rawHeaders.findIndex((name, index) => index % 2 === 0 && name.toLowerCase() === 'host');
  if (at === -1) rawHeaders.push('Host', host);
  else rawHeaders[at + 1] = host;
}
