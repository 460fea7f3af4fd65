/**
 * Adds the prefix to the path of a cookie, so that it is sent only to its own server and not to
 * others on the same host. A cookie without a path has the path of its request anyway.
 */
export function prefixCookiePath(cookie: string, prefix: string): string {
  const path = /;\s*path=([^;]*)/i.exec(cookie);
  if (path === null) return cookie;
  const value = path[1]?.trim() ?? '';
  if (value === prefix || value.startsWith(`${prefix}/`)) return cookie;
  return (
    cookie.slice(0, path.index) +
    `; Path=${prefix}${value.startsWith('/') ? value : '/'}` +
    cookie.slice(path.index + path[0].length)
  );
}
