import { ApiError } from '../api-client.ts';
import type { ApiClient } from '../api-client.ts';
import { findByIdOrName, requireByIdOrName } from '../find-by-id-or-name.ts';

/** The GPUs of an endpoint. */
export interface GpuChoice {
  pools: string[];
  excludedTypes?: string[];
}

/** The fields of an endpoint that the commands use. */
export interface EndpointView {
  id: string;
  name: string;
  type: 'QUEUE' | 'LOAD_BALANCER';
  image: string;
  /** The id of saved registry credentials; older servers do not say. */
  registry?: string | null;
  env: Record<string, string>;
  gpu?: GpuChoice | null;
  workers: { min: number; max: number; idleTimeout?: number };
  requestUrls: Record<string, string>;
}

/** What is known of an endpoint if the key has access only to the job API. */
export type EndpointForJobs = Pick<EndpointView, 'id' | 'name'> & Partial<Pick<EndpointView, 'type'>>;

export const endpointArgumentHelp = 'The endpoint, by id or name.';

export function endpointPath({ id }: Pick<EndpointView, 'id'>, below = ''): string {
  return `/v2/serverless/${encodeURIComponent(id)}${below}`;
}

/** A path of the job API. */
export function jobPath({ id }: Pick<EndpointView, 'id'>, below: string): string {
  return `/v2/${encodeURIComponent(id)}/${below}`;
}

export function listEndpoints(client: ApiClient): Promise<EndpointView[]> {
  return client.listAll<EndpointView>('/v2/serverless', 'endpoints');
}

export async function findEndpoint(client: ApiClient, word: string): Promise<EndpointView> {
  const words = { noun: 'endpoint', listCommand: 'berth ps' };
  return requireByIdOrName(await listEndpoints(client), word, words);
}

/** A key with access only to the job API cannot look up a name, so it must be an id. */
export async function findEndpointForJobs(client: ApiClient, word: string): Promise<EndpointForJobs> {
  try {
    return await findEndpoint(client, word);
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) return { id: word, name: word };
    throw error;
  }
}

/** An endpoint that need not exist. */
export function findEndpointIn(all: readonly EndpointView[], word: string): EndpointView | undefined {
  return findByIdOrName(all, word, { noun: 'endpoint' });
}
