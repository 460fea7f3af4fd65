import { endOfSegment } from './address.ts';
import type { PassedPath } from './address.ts';

const PREFIX = '/proxy/';
/** `{pod_id}-{port}`. A declared port may be a number that no port can have: it stands for another. */
const POD_PORT = /^([a-z0-9]{1,64})-([1-9]\d{0,5})$/i;

/** Where a request to a pod's HTTP port goes. */
export interface PodAddress extends PassedPath {
  podId: string;
  port: number;
}

/** Takes `/proxy/{pod_id}-{port}<path>` apart. `malformed`: it is below `/proxy/`, and names no port of a pod. */
export function podPathAddress(url: string): PodAddress | 'malformed' | undefined {
  if (!url.startsWith(PREFIX)) return undefined;
  const end = endOfSegment(url, PREFIX.length);
  const found = podPort(url.slice(PREFIX.length, end));
  return found === undefined ? 'malformed' : { ...found, path: url.slice(end), prefix: url.slice(0, end) };
}

/** The port that a host name `{pod_id}-{port}.<domain>` names: then the whole path is the pod's. */
export function podHostAddress(host: string | undefined, url: string, domain: string): PodAddress | undefined {
  if (domain === '' || host === undefined) return undefined;
  const name = host.toLowerCase().replace(/:\d+$/, '');
  const suffix = `.${domain.toLowerCase()}`;
  const found = name.endsWith(suffix) ? podPort(name.slice(0, -suffix.length)) : undefined;
  return found === undefined ? undefined : { ...found, path: url.startsWith('/') ? url : `/${url}`, prefix: '' };
}

function podPort(text: string): { podId: string; port: number } | undefined {
  const [, podId, port] = POD_PORT.exec(text) ?? [];
  return podId === undefined ? undefined : { podId, port: Number(port) };
}
