import { RESERVED_SEGMENTS } from '../../resources/endpoints/reserved-ids.ts';
import { startOfEndpoint } from '../jobs/address.ts';
import type { Domain } from './domain.ts';

/** The path of a request, as whoever serves it sees it and as its client wrote it. */
export interface PassedPath {
  /** Path and query as the server behind the gateway sees them. */
  path: string;
  /** What the client put before that path, such as `/v2/{endpoint_id}`; nothing where the host name says where it goes. */
  prefix: string;
}

/** Where a request to an endpoint goes. */
export interface GatewayAddress extends PassedPath {
  endpointId: string;
}

/** Takes `/v2/{endpoint_id}<path>` apart; undefined where it is no address of an endpoint. */
export function pathAddress(url: string): GatewayAddress | undefined {
  const start = startOfEndpoint(url);
  if (start === undefined) return undefined;
  const end = endOfSegment(url, start);
  const endpointId = decoded(url.slice(start, end));
  if (endpointId === '' || RESERVED_SEGMENTS.has(endpointId)) return undefined;
  const path = url.slice(end);
  return { endpointId, path: path.startsWith('/') ? path : `/${path}`, prefix: url.slice(0, end) };
}

/** The endpoint that a host name `{endpoint_id}.<domain>` names. */
export function hostEndpoint(host: string | undefined, domain: Domain): string | undefined {
  const label = domain.label(host);
  return label !== undefined && /^[a-z0-9]+$/.test(label) ? label : undefined;
}

/** The same as an address: with a host name, the whole path is the worker's. */
export function hostAddress(
  host: string | undefined,
  url: string,
  domain: Domain,
): GatewayAddress | undefined {
  const endpointId = hostEndpoint(host, domain);
  return endpointId === undefined
    ? undefined
    : { endpointId, path: url.startsWith('/') ? url : `/${url}`, prefix: '' };
}

/** `%61` is `a`, wherever it stands. What cannot be read, or has control characters in it, is left as it is: no endpoint has such an id, and PostgreSQL cannot even be asked for one with a NUL. */
function decoded(segment: string): string {
  if (!segment.includes('%')) return segment;
  try {
    const text = decodeURIComponent(segment);
    return /\p{Cc}/u.test(text) ? segment : text;
  } catch {
    return segment;
  }
}

export function endOfSegment(url: string, from: number): number {
  for (let at = from; at < url.length; at += 1) {
    const code = url.charCodeAt(at);
    if (code === 0x2f || code === 0x3f) return at;
  }
  return url.length;
}
