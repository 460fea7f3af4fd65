import type { JobCounts, JobWithPayloads } from '../../domain/job-records.ts';
import type { JobStore } from '../job-store.ts';
import {
  JOB_SELECT,
  jobFromValues,
  jobWithPayloadsFromValues,
  OUTLINE_SELECT,
  outlineFromValues,
  PAYLOAD_BYTES,
  PAYLOAD_SELECT,
  withRequests,
} from '../tables/jobs.table.ts';
import type { QueueContext } from './queue-context.ts';

/** What can be asked of the queue without changing it. */
export function readJobs({
  statements,
  group,
}: QueueContext): Pick<
  JobStore,
  | 'find'
  | 'findOutline'
  | 'readOutput'
  | 'findAll'
  | 'list'
  | 'counts'
  | 'countWaiting'
  | 'countAhead'
  | 'listRunning'
> {
  const selectWhole = statements.arrays(
    `select ${JOB_SELECT}, ${PAYLOAD_SELECT} from ${withRequests()}
      where job.seq = :seq and job.endpoint_id = :endpoint_id`,
  );
  const find = (endpoint_id: string, seq: number): JobWithPayloads | undefined => {
    const values = selectWhole.get({ seq, endpoint_id });
    return values === undefined ? undefined : jobWithPayloadsFromValues(values);
  };
  const selectOutline = statements.arrays(
    `select ${JOB_SELECT}, ${OUTLINE_SELECT} from ${withRequests()}
      where job.seq = :seq and job.endpoint_id = :endpoint_id`,
  );
  // As bytes: a text of many megabytes would be converted to a string, and back when it is sent.
  const selectOutput = statements.arrays(
    'select cast(output as blob) from jobs where seq = :seq and endpoint_id = :endpoint_id',
  );
  const selectCounts = statements.rows<JobCounts & Record<string, never>>(
    `select coalesce(sum(queued), 0) as inQueue, coalesce(sum(running), 0) as inProgress,
      coalesce(sum(completed), 0) as completed, coalesce(sum(failed), 0) as failed, coalesce(sum(retried), 0) as retried
      from job_counts where endpoint_id = :endpoint_id`,
  );
  const countWaiting = statements.rows<{ waiting: number; late: number }>(
    `select count(*) as waiting, count(*) filter (where queued_at <= :queued_before) as late
      from (select queued_at from jobs indexed by jobs_waiting
        where endpoint_id = :endpoint_id and low_priority = 0 and status = 'IN_QUEUE'
        order by account_id, position limit :limit)`,
  );
  const countAllWaiting = statements.rows<{ count: number }>(
    `select count(*) as count from (select 1 from jobs indexed by jobs_waiting
      where endpoint_id = :endpoint_id and status = 'IN_QUEUE' limit :limit)`,
  );
  const countAhead = statements.rows<{ ahead: number }>(
    `select count(*) as ahead from (select 1 from jobs indexed by jobs_waiting
      where endpoint_id = :endpoint_id and status = 'IN_QUEUE'
        and (low_priority < :low_priority or (low_priority = :low_priority and position < :position)) limit :limit)`,
  );
  const selectRunning = statements.arrays(
    `select ${JOB_SELECT} from jobs as job indexed by jobs_running where job.status = 'IN_PROGRESS'`,
  );
  const selectRunningOf = statements.arrays(
    `select ${JOB_SELECT} from jobs as job indexed by jobs_running
      where job.status = 'IN_PROGRESS' and job.endpoint_id = :endpoint_id`,
  );

  return {
    find: (endpointId, seq) => group.read(() => find(endpointId, seq), [seq]),

    findOutline: (endpoint_id, seq, max_bytes) =>
      group.read(() => {
        const values = selectOutline.get({ seq, endpoint_id, max_bytes });
        return values === undefined ? undefined : outlineFromValues(values, max_bytes);
      }, [seq]),

    readOutput: (endpoint_id, seq) =>
      group.read(
        () => (selectOutput.get({ seq, endpoint_id })?.[0] ?? undefined) as Uint8Array | undefined,
        [seq],
      ),

    findAll: (endpointId, seqs) =>
      group.read(
        () =>
          [...seqs]
            .sort((one, other) => other - one)
            .map((seq) => find(endpointId, seq))
            .filter((found) => found !== undefined),
        seqs,
      ),

    list: (endpoint_id, { status, before = Number.MAX_SAFE_INTEGER, maxRowsScanned, now }) =>
      group.readUnsynced(() => {
        // Running jobs are few and have an index, and so have waiting ones; where many wait, the scan through
        // all jobs soon meets them.
        const fewWait =
          status === 'IN_QUEUE' &&
          Number(countAllWaiting.get({ endpoint_id, limit: maxRowsScanned })?.count) < maxRowsScanned;
        const index =
          status === 'IN_PROGRESS' ? 'jobs_running' : fewWait ? 'jobs_waiting' : 'jobs_by_endpoint';
        const hasStatus = status === undefined ? '' : `and job.status = '${status}'`;
        const scanned = `job.endpoint_id = :endpoint_id and job.seq < :before
          ${index === 'jobs_by_endpoint' ? '' : hasStatus}`;
        const last = statements
          .rows<{ seq: number }>(
            `select job.seq from jobs as job indexed by ${index} where ${scanned} order by job.seq ` +
              'desc limit 1 offset :offset',
          )
          .get({ endpoint_id, before, offset: maxRowsScanned - 1 });
        const jobs = statements
          .rows<{ seq: number; bytes: number }>(
            `select job.seq, ${PAYLOAD_BYTES} as bytes from ${withRequests(`jobs as job indexed by ${index}`)}
              where ${scanned} and job.seq >= :last ${hasStatus}
                and (job.status in ('IN_QUEUE', 'IN_PROGRESS') or job.due_at > :now)
              order by job.seq desc`,
          )
          .all({ endpoint_id, before, last: last?.seq ?? 0, now });
        return { jobs: jobs.map(({ seq, bytes }) => ({ seq, bytes })), next: last?.seq };
      }),

    counts: (endpoint_id) =>
      group.readUnsynced(() => ({ ...(selectCounts.get({ endpoint_id }) as JobCounts) })),

    countWaiting: (endpoint_id, queued_before, limit) =>
      group.readUnsynced(() => ({
        waiting: 0,
        late: 0,
        ...countWaiting.get({ endpoint_id, queued_before, limit }),
      })),

    countAhead: ({ endpointId, lowPriority, position }, limit) =>
      group.readUnsynced(
        () =>
          countAhead.get({
            endpoint_id: endpointId,
            low_priority: lowPriority ? 1 : 0,
            position,
            limit,
          })?.ahead ?? 0,
      ),

    listRunning: (endpoint_id) =>
      group.read(() =>
        (endpoint_id === undefined ? selectRunning.all() : selectRunningOf.all({ endpoint_id })).map(
          jobFromValues,
        ),
      ),
  };
}
