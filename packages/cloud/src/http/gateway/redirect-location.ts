/**
 * A worker does not know of the `/v2/{endpoint_id}` before its paths. The prefix is added to
 * redirects to the worker itself; others, and those that have it already, stay as they are.
 */
export function prefixLocation(location: string, prefix: string, host: string | undefined): string {
  const origin = ownOrigin(location, host);
  if (origin === undefined) return location;
  const path = location.slice(origin.length);
  const hasPrefix = path.startsWith(prefix) && ['', '/', '?', '#'].includes(path.charAt(prefix.length));
  return hasPrefix ? location : `${origin}${prefix}${path.startsWith('/') ? path : `/${path}`}`;
}

/**
 * The origin of a location on this host, empty for an absolute path; undefined for a relative path or another
 * host.
 */
function ownOrigin(location: string, host: string | undefined): string | undefined {
  if (location.startsWith('/') && !location.startsWith('//')) return '';
  const match = /^https?:\/\/([^/?#]*)/i.exec(location);
  return match !== null && host !== undefined && match[1]?.toLowerCase() === host.toLowerCase()
    ? match[0]
    : undefined;
}
