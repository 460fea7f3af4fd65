import { useQueries } from '@tanstack/react-query';
import { api } from '../../api/client.ts';
import { usePermissions } from '../../api/session.ts';
import type { Endpoint, EndpointHealth } from '../../api/types.ts';

/** More endpoints than this are not asked one by one. */
const MAX_ASKED = 40;

/** The queues and workers of the first endpoints, by id. */
export function useHealth(endpoints: readonly Pick<Endpoint, 'id' | 'type'>[]): Map<string, EndpointHealth> {
  const may = usePermissions();
  const asked = endpoints.filter(({ type, id }) => type === 'QUEUE' && may.readJobs(id)).slice(0, MAX_ASKED);
  return useQueries({
    queries: asked.map(({ id }) => ({
      queryKey: [`/v2/${id}/health`, {}],
      queryFn: () => api<EndpointHealth>(`/v2/${id}/health`),
      refetchInterval: 15_000,
    })),
    combine: (results) =>
      new Map(
        results.flatMap(({ data }, index) => (data === undefined ? [] : [[asked[index]?.id ?? '', data]])),
      ),
  });
}
