import type { JobStore } from '../job-store.ts';
import { estimatedBytes, SAMPLED_JOBS, SAMPLED_QUEUES } from '../queued-bytes-estimate.ts';
import type { SampledQueueRow } from '../queued-bytes-estimate.ts';
import { toQueueDepth } from '../queue-depth-row.ts';
import type { QueueDepthRow } from '../queue-depth-row.ts';
import type { QueueContext } from './queue-context.ts';

/** How much waits in the queues of an account, or of all. */
export function queuedUsage({
  statements,
}: QueueContext): Pick<JobStore, 'queuedJobs' | 'queueDepths' | 'queuedBytes' | 'estimateQueuedBytes'> {
  const own = (table: string): string =>
    `(:account_id::text is null or ${table}.endpoint_id in (select id from endpoints where account_id ` +
    '= :account_id::text))';
  const selectJobs = statements.rows<{ jobs: number }>(
    `select coalesce(sum(queued), 0)::bigint as jobs from job_counts where ${own('job_counts')}`,
  );
  const selectBytes = statements.rows<{ bytes: number }>(
    `select coalesce(sum(octet_length(request.request)), 0)::bigint as bytes
      from jobs as job join job_requests as request on request.endpoint_id = job.endpoint_id and request.seq = job.seq
      where job.status = 'IN_QUEUE' and ${own('job')}`,
  );
  const selectSampled = statements.rows<SampledQueueRow>(
    `select counted.queued, (select coalesce(avg(octet_length(request.request)), 0)
        from (select seq from jobs where endpoint_id = counted.endpoint_id and status = 'IN_QUEUE'
          order by low_priority, account_id, position limit ${SAMPLED_JOBS}) as job
        join job_requests as request on request.endpoint_id = counted.endpoint_id and request.seq = job.seq)::float
        as average
      from (select endpoint_id, sum(queued)::bigint as queued from job_counts where ${own('job_counts')}
        group by endpoint_id having sum(queued) > 0 order by 2 desc limit ${SAMPLED_QUEUES}) as counted`,
  );
  // Jobs of one account wait in the order of their age, so the first of an index is the oldest.
  const selectDepths = statements.rows<QueueDepthRow>(
    `select counted.endpoint_id, counted.queued, counted.running,
        (select queued_at from jobs
          where endpoint_id = counted.endpoint_id and low_priority = 0 and status = 'IN_QUEUE'
          order by account_id, position limit 1) as oldest
      from (select endpoint_id, sum(queued)::bigint as queued, sum(running)::bigint as running
        from job_counts group by endpoint_id having sum(queued) > 0 or sum(running) > 0
        order by 2 desc, 1 limit :limit) as counted
      order by counted.queued desc, counted.endpoint_id`,
  );
  return {
    queuedJobs: async (accountId) => Number((await selectJobs({ account_id: accountId ?? null }))[0]?.jobs),
    queueDepths: async (limit) => (await selectDepths({ limit })).map(toQueueDepth),
    estimateQueuedBytes: async (accountId) => {
      const own = { account_id: accountId ?? null };
      const [sampled, [counted]] = await Promise.all([selectSampled(own), selectJobs(own)]);
      return estimatedBytes(sampled, Number(counted?.jobs));
    },
    queuedBytes: async (accountId) =>
      Number((await selectBytes({ account_id: accountId ?? null }))[0]?.bytes),
  };
}
