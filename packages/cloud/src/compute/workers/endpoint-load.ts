import type { JobQueue } from '../../queue/job-queue.ts';
import type { Endpoint } from '../../domain/records.ts';
import type { EndpointLoad } from '../../domain/endpoints/worker-scaling.ts';

/** The load of an endpoint: jobs in the queue, or requests that the gateway counts. */
export async function endpointLoad(
  endpoint: Endpoint,
  requests: number,
  queue: Pick<JobQueue, 'countWaiting' | 'counts'>,
  now: number,
): Promise<EndpointLoad> {
  if (endpoint.type === 'LOAD_BALANCER') return { waiting: requests, overdue: 0, inProgress: 0 };
  const { inQueue, inProgress } = await queue.counts(endpoint.id);
  // Most endpoints have no job: one question less to the store.
  if (inQueue === 0) return { waiting: 0, overdue: 0, inProgress };
  const { waiting, late } = await queue.countWaiting(
    endpoint.id,
    now - endpoint.scalerValue * 1000,
    jobCountLimit(endpoint),
  );
  return { waiting, overdue: late, inProgress };
}

/** Jobs beyond this do not change the scaling, so they are not counted. */
export function jobCountLimit({
  workersMax,
  scalerType,
  scalerValue,
}: Pick<Endpoint, 'workersMax' | 'scalerType' | 'scalerValue'>): number {
  return Math.max(1, workersMax) * (scalerType === 'REQUEST_COUNT' ? Math.ceil(scalerValue) : 1) + 1;
}
