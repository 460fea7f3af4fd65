/**
 * A cookie of a server that knows nothing of the prefix before its paths. Below the prefix it is
 * sent to that server alone, and not to the others on the same host. One without a path is so anyway.
 */
export function prefixCookiePath(cookie: string, prefix: string): string {
  const path = /;\s*path=([^;]*)/i.exec(cookie);
  if (path === null) return cookie;
  const own = path[1]?.trim() ?? '';
  if (own === prefix || own.startsWith(`${prefix}/`)) return cookie;
  return (
    cookie.slice(0, path.index) +
    `; Path=${prefix}${own.startsWith('/') ? own : '/'}` +
    cookie.slice(path.index + path[0].length)
  );
}
