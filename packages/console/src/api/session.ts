import { useApi } from './queries.ts';
import type { UseQueryResult } from '@tanstack/react-query';

export type Grant = 'NONE' | 'READ' | 'WRITE';

export interface CurrentSession {
  accountId: string;
  accountName: string;
  operator: boolean;
  key: {
    id: string;
    name: string;
    access: 'ALL' | 'READ_ONLY' | 'RESTRICTED';
    scopes: { rest: Grant; graphql: Grant; serverless: Grant };
    endpoints: string[] | null;
    expiresAt: string | null;
  };
  sessionId: string | null;
}

export function useSession(): UseQueryResult<CurrentSession, Error> {
  return useApi<CurrentSession>('/v2/session', { everyMs: 60_000 });
}

export interface Permissions {
  /** May change resources. */
  write: boolean;
  /** May read jobs of an endpoint. */
  readJobs(endpointId: string): boolean;
  /** May submit, cancel and retry jobs of an endpoint. */
  run(endpointId: string): boolean;
  /** May manage keys. */
  manageKeys: boolean;
  operator: boolean;
}

/** What the session may do. Buttons that it may not press are not shown. */
export function usePermissions(): Permissions {
  return permissionsOf(useSession().data);
}

function permissionsOf(session: CurrentSession | undefined): Permissions {
  const serverless = (id: string): Grant => {
    if (session === undefined) return 'NONE';
    const { scopes, endpoints, access } = session.key;
    return access === 'RESTRICTED' && endpoints !== null && !endpoints.includes(id)
      ? 'NONE'
      : scopes.serverless;
  };
  return {
    write: session?.key.scopes.rest === 'WRITE',
    readJobs: (id) => serverless(id) !== 'NONE',
    run: (id) => serverless(id) === 'WRITE',
    manageKeys: session?.key.access === 'ALL',
    operator: session?.operator === true,
  };
}
