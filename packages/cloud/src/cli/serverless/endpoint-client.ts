import { closestMatch } from '../../support/config/did-you-mean.ts';
import { ApiError } from '../api-client.ts';
import type { ApiClient } from '../api-client.ts';
import { CliError } from '../cli.errors.ts';

/** The fields of an endpoint that the commands use. */
export interface EndpointView {
  id: string;
  name: string;
  type: 'QUEUE' | 'LOAD_BALANCER';
  image: string;
  /** The id of saved registry credentials; older servers do not say. */
  registry?: string | null;
  env: Record<string, string>;
  workers: { min: number; max: number; idleTimeout?: number };
  requestUrls: Record<string, string>;
}

/** What is known of an endpoint if the key has access only to the job API. */
export type EndpointForJobs = Pick<EndpointView, 'id' | 'name'> & Partial<Pick<EndpointView, 'type'>>;

interface EndpointPage {
  endpoints: EndpointView[];
  pagination: { nextCursor: string | null };
}

export const endpointArgumentHelp = 'The endpoint, by id or name.';

export function endpointPath({ id }: Pick<EndpointView, 'id'>, below = ''): string {
  return `/v2/serverless/${encodeURIComponent(id)}${below}`;
}

/** A path of the job API. */
export function jobPath({ id }: Pick<EndpointView, 'id'>, below: string): string {
  return `/v2/${encodeURIComponent(id)}/${below}`;
}

export async function listEndpoints(client: ApiClient): Promise<EndpointView[]> {
  const found: EndpointView[] = [];
  let cursor: string | null = null;
  do {
    const page: EndpointPage = await client.get<EndpointPage>(
      `/v2/serverless${cursor === null ? '' : `?cursor=${encodeURIComponent(cursor)}`}`,
    );
    found.push(...page.endpoints);
    cursor = page.pagination.nextCursor;
  } while (cursor !== null);
  return found;
}

export async function findEndpoint(client: ApiClient, word: string): Promise<EndpointView> {
  const all = await listEndpoints(client);
  const found = findByIdOrName(all, word);
  if (found !== undefined) return found;
  const close = closestMatch(
    word,
    all.map(({ name }) => name),
  );
  throw new CliError(
    'there is no endpoint ' +
      `${JSON.stringify(word)}${close === undefined ? '; "berth ps" shows all' : `; did you mean ${JSON.stringify(close)}?`}`,
  );
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

/** Finds an endpoint by id or by a unique name. */
export function findByIdOrName(all: readonly EndpointView[], word: string): EndpointView | undefined {
  const byId = all.filter(({ id }) => id === word);
  const found = byId.length > 0 ? byId : all.filter(({ name }) => name === word);
  if (found.length > 1)
    throw new CliError(
      `${found.length} endpoints are called ${JSON.stringify(word)}; name one by its id: ` +
        `${found.map(({ id }) => id).join(', ')}`,
    );
  return found[0];
}
