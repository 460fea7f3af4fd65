import { RESERVED_ENDPOINT_IDS } from '../../domain/endpoints/reserved-endpoint-ids.ts';

const PREFIX = '/v2/';
const SLASH = 0x2f;

export interface JobUrl {
  endpointId: string;
  operation: string;
  /** The path segments after the operation: a worker and a job, or a job. */
  rest: string[];
  query: string;
}

/**
 * Where the endpoint id begins in `/v2/{endpoint}…`. Clients with a base URL that ends in a slash write
 * `/v2//{endpoint}`.
 */
export function endpointIdStart(url: string): number | undefined {
  if (!url.startsWith(PREFIX)) return undefined;
  let at = PREFIX.length;
  while (url.charCodeAt(at) === SLASH) at += 1;
  return at;
}

/**
 * Parses `/v2/{endpoint}/{operation}/…?query`; undefined if it is not the URL of an endpoint. A slash at the
 * end is ignored.
 */
export function parseJobUrl(url: string): JobUrl | undefined {
  const start = endpointIdStart(url);
  if (start === undefined) return undefined;
  const mark = url.indexOf('?');
  const path = url.slice(start, mark === -1 ? url.length : mark);
  const [endpointId = '', operation = '', ...rest] = path.split('/');
  if (endpointId === '' || operation === '' || RESERVED_ENDPOINT_IDS.has(endpointId)) return undefined;
  if (rest.at(-1) === '') rest.pop();
  return { endpointId, operation, rest, query: mark === -1 ? '' : url.slice(mark + 1) };
}
