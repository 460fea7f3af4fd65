import { RESERVED_ENDPOINT_IDS } from '../../domain/endpoints/reserved-endpoint-ids.ts';
import { endpointIdStart } from '../jobs/job-url.ts';
import type { WildcardDomain } from './wildcard-domain.ts';

/** The path of a request, split into the gateway's part and the worker's part. */
export interface ForwardedPath {
  /** Path and query for the server behind the gateway. */
  path: string;
  /** The part before that path, such as `/v2/{endpoint_id}`; empty if the host name selects the target. */
  prefix: string;
}

/** The target of a request to an endpoint. */
export interface GatewayUrl extends ForwardedPath {
  endpointId: string;
}

/** Parses `/v2/{endpoint_id}<path>`; undefined if it is not the URL of an endpoint. */
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

/** The same as a URL: under a host name, the whole path belongs to the worker. */
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

/**
 * Decodes percent escapes. An invalid segment, or one with control characters, stays as it is: no endpoint
 * has such an id, and PostgreSQL refuses text with a NUL.
 */
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
