import { segmentEnd } from './gateway-url.ts';
import type { ForwardedPath } from './gateway-url.ts';
import type { WildcardDomain } from './wildcard-domain.ts';

const PREFIX = '/proxy/';
/** `{pod_id}-{port}`. A declared port may be above 65535: then it stands for another port. */
const POD_PORT = /^([a-z0-9]{1,64})-([1-9]\d{0,5})$/i;

/** The target of a request to a pod's HTTP port. */
export interface PodPortUrl extends ForwardedPath {
  podId: string;
  port: number;
}

/** Parses `/proxy/{pod_id}-{port}<path>`. `malformed`: it is below `/proxy/`, but names no pod port. */
export function parsePodPortPath(url: string): PodPortUrl | 'malformed' | undefined {
  if (!url.startsWith(PREFIX)) return undefined;
  const end = segmentEnd(url, PREFIX.length);
  const found = parsePodPort(url.slice(PREFIX.length, end));
  return found === undefined ? 'malformed' : { ...found, path: url.slice(end), prefix: url.slice(0, end) };
}

/** The port that a host name `{pod_id}-{port}.<domain>` names: then the whole path belongs to the pod. */
export function parsePodPortHost(
  host: string | undefined,
  url: string,
  domain: WildcardDomain,
): PodPortUrl | undefined {
  const label = domain.subdomain(host);
  const found = label === undefined ? undefined : parsePodPort(label);
  return found === undefined
    ? undefined
    : { ...found, path: url.startsWith('/') ? url : `/${url}`, prefix: '' };
}

function parsePodPort(text: string): { podId: string; port: number } | undefined {
  const [, podId, port] = POD_PORT.exec(text) ?? [];
  return podId === undefined ? undefined : { podId, port: Number(port) };
}
