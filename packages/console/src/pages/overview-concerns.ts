import type { AccountOverview } from '../api/overview.ts';
import { plural } from '../components/format.ts';
import { LIMIT_WORDS } from './limit-words.ts';

export interface Concern {
  id: string;
  to: string;
  title: string;
  detail: string;
  status: string;
}

export interface LimitUse {
  name: string;
  used: number;
  limit: number | null;
}

const NEARLY_FULL = 0.8;

/**
 * What needs attention: jobs that wait without workers, unhealthy workers, pods in trouble, limits
 * nearly reached.
 */
export function concernsOf(
  { active, pods }: Pick<AccountOverview, 'active'> & { pods: Pick<AccountOverview['pods'], 'failed'> },
  limits: readonly LimitUse[],
): Concern[] {
  const concerns: Concern[] = [];
  for (const { id, name, workersMax, failedStored, jobs, workers } of active) {
    const add = (kind: string, status: string, detail: string): void =>
      void concerns.push({
        id: `${id} ${kind}`,
        to: kind === 'failed' ? `/serverless/${id}/requests` : `/serverless/${id}`,
        title: name,
        detail,
        status,
      });
    if (workers.unhealthy > 0)
      add('unhealthy', 'UNHEALTHY', `${plural(workers.unhealthy, 'worker')} failing again and again`);
    if (jobs.inQueue > 0 && jobs.inProgress + workers.ready + workers.initializing === 0)
      add(
        'waiting',
        'IN_QUEUE',
        workersMax === 0
          ? `${plural(jobs.inQueue, 'job')} waiting; it may have no workers`
          : `${plural(jobs.inQueue, 'job')} waiting and no worker runs`,
      );
    // Of failed jobs that are not stored any more, there is nothing to see.
    if (jobs.failed > 0 && failedStored !== false)
      add('failed', 'FAILED', `${plural(jobs.failed, 'job')} failed`);
    if (workers.throttled > 0)
      add('throttled', 'THROTTLED', `no place to run for ${plural(workers.throttled, 'worker')}`);
  }
  for (const { id, name, statusDetail } of pods.failed)
    concerns.push({ id, to: `/pods/${id}`, title: name, detail: statusDetail ?? '', status: 'ERROR' });
  for (const { name, used, limit } of limits)
    if (limit !== null && limit > 0 && used / limit >= NEARLY_FULL)
      concerns.push({
        id: `limit ${name}`,
        to: '/billing',
        title: `Limit: ${LIMIT_WORDS[name] ?? name}`,
        detail: `${Math.round((used / limit) * 100)} % is used`,
        status: used >= limit ? 'ERROR' : 'PENDING',
      });
  return concerns;
}
