import type { UseQueryResult } from '@tanstack/react-query';
import { useApi } from './queries.ts';
import type { EndpointHealth } from './types.ts';

/** An endpoint with jobs or workers. */
export interface ActiveEndpoint extends EndpointHealth {
  id: string;
  name: string;
  workersMax: number;
  /** Whether any of the failed jobs is still stored. Left out by an earlier version. */
  failedStored?: boolean;
}

/** The whole account in numbers, however much it has. */
export interface AccountOverview {
  endpoints: number;
  jobs: { inQueue: number; inProgress: number };
  workers: EndpointHealth['workers'];
  /** The longest queue first. */
  active: ActiveEndpoint[];
  pods: {
    total: number;
    byStatus: Record<string, number>;
    failed: { id: string; name: string; statusDetail: string | null }[];
  };
}

export function useOverview(): UseQueryResult<AccountOverview, Error> {
  return useApi<AccountOverview>('/v2/account/overview', { everyMs: 15_000 });
}
