import type { Request } from '../raw-http.ts';

const SESSION_COOKIE = 'berth_session';
/** Scripts of other sites cannot send it: this server allows no cross-origin requests. */
export const CONSOLE_HEADER = 'x-berth-console';

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);
const tokens = new WeakMap<Request, string>();

/** The session that a request came with, if `applySession` saw it. */
export function sessionTokenOf(request: Request): string | undefined {
  return tokens.get(request);
}

/**
 * Turns the session cookie into a bearer token, so that every interface sees one kind of credential. It is
 * taken out of the headers either way: what a request is forwarded to must not see it. The token is set in
 * `headers` alone, and requests are forwarded by `rawHeaders`.
 *
 * Without effect for a request that another site may have caused. A write needs the console's own header.
 */
export function applySession(request: Request, origin: () => string): void {
  const { headers } = request;
  if (headers.cookie?.includes(SESSION_COOKIE) !== true) return;
  const token = removeCookie(request);
  if (token === undefined) return;
  tokens.set(request, token);
  if (headers.authorization !== undefined || !isOwnRequest(request, origin)) return;
  headers.authorization = `Bearer ${token}`;
}

/** Whether the console sent this, as far as the browser's headers show. */
function isOwnRequest({ method = 'GET', headers }: Request, origin: () => string): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false;
  if (headers.upgrade !== undefined) return isOwnOrigin(headers, origin);
  if (headers.origin !== undefined && !isOwnOrigin(headers, origin)) return false;
  return SAFE_METHODS.has(method) || headers[CONSOLE_HEADER] !== undefined;
}

export function isOwnOrigin({ origin: from, host }: Request['headers'], origin: () => string): boolean {
  if (from === undefined || !URL.canParse(from)) return false;
  return new URL(from).host === host?.toLowerCase() || from === new URL(origin()).origin;
}

/** Removes the cookie from both forms of the headers, and returns its value. */
function removeCookie({ headers, rawHeaders }: Request): string | undefined {
  const { value, rest } = splitCookies(headers.cookie ?? '');
  if (rest === '') delete headers.cookie;
  else headers.cookie = rest;
  for (let at = rawHeaders.length - 2; at >= 0; at -= 2) {
    if (rawHeaders[at]?.toLowerCase() !== 'cookie') continue;
    const left = splitCookies(rawHeaders[at + 1] ?? '').rest;
    if (left === '') rawHeaders.splice(at, 2);
    else rawHeaders[at + 1] = left;
  }
  return value;
}

function splitCookies(header: string): { value: string | undefined; rest: string } {
  let value: string | undefined;
  const rest = header.split(';').filter((pair) => {
    const [name, ...text] = pair.split('=');
    if (name?.trim() !== SESSION_COOKIE) return pair.trim() !== '';
    value ??= text.join('=').trim();
    return false;
  });
  return { value, rest: rest.join(';').trim() };
}

export function sessionCookie(token: string, expiresAt: number, secure: boolean): string {
  return (
    `${SESSION_COOKIE}=${token}; Path=/; HttpOnly; SameSite=Lax; ` +
    `Expires=${new Date(expiresAt).toUTCString()}${secure ? '; Secure' : ''}`
  );
}

export function endedSessionCookie(secure: boolean): string {
  return sessionCookie('', 0, secure);
}
