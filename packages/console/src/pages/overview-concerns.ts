import type { Endpoint, EndpointHealth } from '../api/types.ts';

export interface OverviewPod {
  id: string;
  name: string;
  status: string;
  statusDetail?: string | null;
}

export interface Concern {
  id: string;
  to: string;
  title: string;
  detail: string;
  status: string;
}

const NEARLY_FULL = 0.8;

/**
 * What a person should look at: jobs that wait without workers, unhealthy workers, pods in trouble, limits
 * nearly reached.
 */
export function concernsOf(
  endpoints: readonly Pick<Endpoint, 'id' | 'name' | 'workers'>[],
  health: ReadonlyMap<string, EndpointHealth>,
  pods: readonly OverviewPod[],
  limits: readonly { name: string; used: number; limit: number | null }[],
): Concern[] {
  const concerns: Concern[] = [];
  for (const { id, name, workers: wanted } of endpoints) {
    const found = health.get(id);
    if (found === undefined) continue;
    const { jobs, workers } = found;
    const add = (kind: string, status: string, detail: string): void =>
      void concerns.push({
        id: `${id} ${kind}`,
        to: kind === 'failed' ? `/serverless/${id}/requests` : `/serverless/${id}`,
        title: name,
        detail,
        status,
      });
    if (workers.unhealthy > 0)
      add('unhealthy', 'UNHEALTHY', `${workers.unhealthy} workers fail again and again`);
    if (jobs.inQueue > 0 && workers.ready + workers.initializing === 0)
      add(
        'waiting',
        'IN_QUEUE',
        wanted.max === 0
          ? `${jobs.inQueue} jobs wait; it may have no workers`
          : `${jobs.inQueue} jobs wait and no worker runs`,
      );
    if (jobs.failed > 0)
      add('failed', 'FAILED', `${jobs.failed} jobs failed; their inputs are kept for a retry`);
    if (workers.throttled > 0)
      add('throttled', 'THROTTLED', `${workers.throttled} workers find no place to run`);
  }
  for (const { id, name, status, statusDetail } of pods)
    if (status === 'ERROR' || status === 'FAILED' || status === 'UNHEALTHY')
      concerns.push({ id, to: `/pods/${id}`, title: name, detail: statusDetail ?? '', status });
  for (const { name, used, limit } of limits)
    if (limit !== null && limit > 0 && used / limit >= NEARLY_FULL)
      concerns.push({
        id: `limit ${name}`,
        to: '/billing',
        title: `Limit: ${name}`,
        detail: `${Math.round((used / limit) * 100)} % is used`,
        status: used >= limit ? 'ERROR' : 'PENDING',
      });
  return concerns;
}
