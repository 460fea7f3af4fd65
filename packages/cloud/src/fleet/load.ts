import type { JobQueue } from '../jobs/queue.ts';
import type { Endpoint } from '../store/records.ts';
import type { Load } from './scaler.ts';

/** What an endpoint has to do: jobs that the queue has, or requests that the gateway counts. */
export async function loadOf(
  endpoint: Endpoint,
  requests: number,
  queue: Pick<JobQueue, 'waiting' | 'counts'>,
  now: number,
): Promise<Load> {
  if (endpoint.type === 'LOAD_BALANCER') return { waiting: requests, late: 0, inProgress: 0 };
  const { waiting, late } = await queue.waiting(
    endpoint.id,
    now - endpoint.scalerValue * 1000,
    countLimit(endpoint),
  );
  const { inProgress } = await queue.counts(endpoint.id);
  return { waiting, late, inProgress };
}

/** Counting more jobs than could ever matter is wasted. */
export function countLimit({
  workersMax,
  scalerType,
  scalerValue,
}: Pick<Endpoint, 'workersMax' | 'scalerType' | 'scalerValue'>): number {
  return Math.max(1, workersMax) * (scalerType === 'REQUEST_COUNT' ? Math.ceil(scalerValue) : 1) + 1;
}
