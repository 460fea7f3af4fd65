import type { ApiKey, Endpoint } from '../domain/records.ts';
import { BerthError, notFound } from '../support/errors.ts';
import { checkScope } from './authenticator.ts';
import type { Authenticator } from './authenticator.ts';
import type { AccessMode } from './scopes.ts';
import type { WorkerTokens } from './worker-tokens.ts';

export interface EndpointAccessDeps {
  authenticator: Pick<Authenticator, 'authenticate' | 'authenticateFromCache'>;
  endpoints: {
    find(id: string): Promise<Endpoint | undefined>;
    /** Does not wait; undefined if the endpoint is not cached. */
    findCached(id: string): Endpoint | undefined;
  };
}

export interface EndpointAccess {
  key: ApiKey;
  endpoint: Endpoint;
}

export interface WorkerAccess {
  /** Undefined for a worker with its own token. */
  key: ApiKey | undefined;
  endpoint: Endpoint;
}

/** An API key and the endpoint it asks for, which must be of the same account. Scopes are not checked yet. */
export async function authenticateForEndpoint(
  { authenticator, endpoints }: EndpointAccessDeps,
  token: string | undefined,
  endpointId: string,
): Promise<EndpointAccess> {
  const key = authenticator.authenticateFromCache(token) ?? (await authenticator.authenticate(token));
  const endpoint = endpoints.findCached(endpointId) ?? (await endpoints.find(endpointId));
  if (endpoint === undefined || endpoint.accountId !== key.accountId) throw notFound('endpoint', endpointId);
  return { key, endpoint };
}

/** The same, and the key's scopes must allow it. */
export async function authorizeForEndpoint(
  deps: EndpointAccessDeps,
  token: string | undefined,
  endpointId: string,
  mode: AccessMode,
): Promise<EndpointAccess> {
  const access = await authenticateForEndpoint(deps, token, endpointId);
  checkScope(access.key, { scope: 'serverless', mode, endpointId });
  return access;
}

/**
 * The endpoint of a worker, which shows its own token or an API key (`key`) that may write to the endpoint.
 */
export async function authorizeWorker(
  deps: EndpointAccessDeps & { tokens: WorkerTokens },
  token: string,
  endpointId: string,
  workerId: string,
): Promise<WorkerAccess> {
  const { tokens, endpoints } = deps;
  if (!tokens.isToken(token)) return authorizeForEndpoint(deps, token, endpointId, 'write');
  const endpoint = endpoints.findCached(endpointId) ?? (await endpoints.find(endpointId));
  if (endpoint === undefined || !tokens.matches(token, endpointId, workerId))
    throw new BerthError('unauthenticated', 'this token belongs to another worker');
  return { key: undefined, endpoint };
}
