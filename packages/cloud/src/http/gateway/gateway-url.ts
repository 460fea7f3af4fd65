import { RESERVED_ENDPOINT_IDS } from '../../domain/endpoints/reserved-endpoint-ids.ts';
import { endpointIdStart } from '../jobs/job-url.ts';
import type { WildcardDomain } from './wildcard-domain.ts';

/** The path of a request, as whoever serves it sees it and as its client wrote it. */
export interface ForwardedPath {
  /** Path and query as the server behind the gateway sees them. */
  path: string;
  /** What the client put before that path, such as `/v2/{endpoint_id}`; nothing where the host name says where it goes. */
  prefix: string;
}

/** Where a request to an endpoint goes. */
export interface GatewayUrl extends ForwardedPath {
  endpointId: string;
}

/** Takes `/v2/{endpoint_id}<path>` apart; undefined where it is no address of an endpoint. */
export function parseEndpointPath(url: string): GatewayUrl | undefined {
  const start = endpointIdStart(url);
  if (start === undefined) return undefined;
  const end = segmentEnd(url, start);
  const endpointId = decodeSegment(url.slice(start, end));
  if (endpointId === '' || RESERVED_ENDPOINT_IDS.has(endpointId)) return undefined;
  const path = url.slice(end);
  return { endpointId, path: path.startsWith('/') ? path : `/${path}`, prefix: url.slice(0, end) };
}

/** The endpoint that a host name `{endpoint_id}.<domain>` names. */
export function endpointIdFromHost(host: string | undefined, domain: WildcardDomain): string | undefined {
  const label = domain.subdomain(host);
  return label !== undefined && /^[a-z0-9]+$/.test(label) ? label : undefined;
}

/** The same as an address: with a host name, the whole path is the worker's. */
export function parseEndpointHost(
  host: string | undefined,
  url: string,
  domain: WildcardDomain,
): GatewayUrl | undefined {
  const endpointId = endpointIdFromHost(host, domain);
  return endpointId === undefined
    ? undefined
    : { endpointId, path: url.startsWith('/') ? url : `/${url}`, prefix: '' };
}

/** `%61` is `a`, wherever it stands. What cannot be read, or has control characters in it, is left as it is: no endpoint has such an id, and PostgreSQL cannot even be asked for one with a NUL. */
function decodeSegment(segment: string): string {
  if (!segment.includes('%')) return segment;
  try {
    const text = decodeURIComponent(segment);
    return /\p{Cc}/u.test(text) ? segment : text;
  } catch {
    return segment;
  }
}

export function segmentEnd(url: string, from: number): number {
  for (let at = from; at < url.length; at += 1) {
    const code = url.charCodeAt(at);
    if (code === 0x2f || code === 0x3f) return at;
  }
  return url.length;
}
