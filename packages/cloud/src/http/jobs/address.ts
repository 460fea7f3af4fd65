import { RESERVED_SEGMENTS } from '../../resources/endpoints/reserved-ids.ts';

const PREFIX = '/v2/';

export interface JobAddress {
  endpointId: string;
  operation: string;
  /** What follows the operation: a worker and a job, or a job. */
  rest: string[];
  query: string;
}

/** Takes `/v2/{endpoint}/{operation}/…?query` apart; undefined where it is no address of an endpoint. */
export function jobAddress(url: string): JobAddress | undefined {
  if (!url.startsWith(PREFIX)) return undefined;
  const mark = url.indexOf('?');
  const path = mark === -1 ? url : url.slice(0, mark);
  const [endpointId = '', operation = '', ...rest] = path.slice(PREFIX.length).split('/');
  if (endpointId === '' || operation === '' || RESERVED_SEGMENTS.has(endpointId)) return undefined;
  return { endpointId, operation, rest, query: mark === -1 ? '' : url.slice(mark + 1) };
}
