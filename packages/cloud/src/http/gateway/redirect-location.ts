/**
 * A worker that redirects knows nothing of the `/v2/{endpoint_id}` before its paths. An
 * address of its own gets that put before it; one elsewhere, or one that has it already, stays.
 */
export function prefixLocation(location: string, prefix: string, host: string | undefined): string {
  const origin = ownOrigin(location, host);
  if (origin === undefined) return location;
  const path = location.slice(origin.length);
  const has = path.startsWith(prefix) && ['', '/', '?', '#'].includes(path.charAt(prefix.length));
  return has ? location : `${origin}${prefix}${path.startsWith('/') ? path : `/${path}`}`;
}

/** The part before the path where the location is on this host; undefined where it is relative to the present path, or elsewhere. */
function ownOrigin(location: string, host: string | undefined): string | undefined {
  if (location.startsWith('/') && !location.startsWith('//')) return '';
  const match = /^https?:\/\/([^/?#]*)/i.exec(location);
  return match !== null && host !== undefined && match[1]?.toLowerCase() === host.toLowerCase()
    ? match[0]
    : undefined;
}
