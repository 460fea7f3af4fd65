import type { JobStore } from '../job-store.ts';
import { estimatedBytes, SAMPLED_JOBS, SAMPLED_QUEUES } from '../queued-bytes-estimate.ts';
import type { SampledQueueRow } from '../queued-bytes-estimate.ts';
import { toQueueDepth } from '../queue-depth-row.ts';
import type { QueueDepthRow } from '../queue-depth-row.ts';
import type { QueueContext } from './queue-context.ts';

/** How much waits in the queues of an account, or of all. */
export function queuedUsage({
  statements,
  group,
}: QueueContext): Pick<JobStore, 'queuedJobs' | 'queueDepths' | 'queuedBytes' | 'estimateQueuedBytes'> {
  const OWN =
    '(:account_id is null or endpoint_id in (select id from endpoints where account_id = :account_id))';
  const selectJobs = statements.rows<{ jobs: number }>(
    `select coalesce(sum(queued), 0) as jobs from job_counts where ${OWN}`,
  );
  const selectBytes = statements.rows<{ bytes: number }>(
    `select coalesce(sum(octet_length(request.request)), 0) as bytes
      from (select seq from jobs where status = 'IN_QUEUE' and ${OWN}) as job
      join job_requests as request on request.seq = job.seq`,
  );
  const selectSampled = statements.rows<SampledQueueRow>(
    `select counted.queued, (select coalesce(avg(octet_length(request.request)), 0)
        from (select seq from jobs indexed by jobs_waiting
          where endpoint_id = counted.endpoint_id and status = 'IN_QUEUE' limit ${SAMPLED_JOBS}) as job
        join job_requests as request on request.seq = job.seq) as average
      from (select endpoint_id, sum(queued) as queued from job_counts where ${OWN}
        group by endpoint_id having sum(queued) > 0 order by 2 desc limit ${SAMPLED_QUEUES}) as counted`,
  );
  // Jobs of one account wait in the order of their age, so the first of an index is the oldest.
  const selectDepths = statements.rows<QueueDepthRow>(
    `select counted.endpoint_id, counted.queued, counted.running,
        (select queued_at from jobs indexed by jobs_waiting
          where endpoint_id = counted.endpoint_id and low_priority = 0 and status = 'IN_QUEUE'
          order by account_id, position limit 1) as oldest
      from (select endpoint_id, sum(queued) as queued, sum(running) as running
        from job_counts group by endpoint_id having sum(queued) > 0 or sum(running) > 0
        order by 2 desc, 1 limit :limit) as counted
      order by counted.queued desc, counted.endpoint_id`,
  );
  return {
    queuedJobs: (accountId) =>
      group.readUnsynced(() => Number(selectJobs.get({ account_id: accountId ?? null })?.jobs)),
    queueDepths: (limit) => group.readUnsynced(() => selectDepths.all({ limit }).map(toQueueDepth)),
    estimateQueuedBytes: (accountId) =>
      group.readUnsynced(() => {
        const own = { account_id: accountId ?? null };
        return estimatedBytes(selectSampled.all(own), Number(selectJobs.get(own)?.jobs));
      }),
    queuedBytes: (accountId) =>
      group.readUnsynced(() => Number(selectBytes.get({ account_id: accountId ?? null })?.bytes)),
  };
}
