import type { JobCounts } from '../../domain/job-records.ts';
import { batchLookups } from '../../support/lookup-batches.ts';
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
    `select ${JOB_SELECT}, ${PAYLOAD_SELECT} from ${withRequests()} where job.endpoint_id = ` +
      ':endpoint_id and job.seq = :seq',
  );
  const selectOutline = statements.arrays(
    `select ${JOB_SELECT}, ${OUTLINE_SELECT} from ${withRequests()} where job.endpoint_id = ` +
      ':endpoint_id and job.seq = :seq',
  );
  const selectOutput = statements.arrays(
    'select output from jobs where endpoint_id = :endpoint_id and seq = :seq',
  );
  const selectSeveral = statements.arrays(
    `select ${JOB_SELECT}, ${PAYLOAD_SELECT} from ${withRequests()}
      where job.endpoint_id = :endpoint_id and job.seq = any (:seqs::bigint[]) order by job.seq desc`,
  );
  const selectCounts = statements.rows<JobCounts & { endpoint_id: string }>(
    `select endpoint_id, sum(queued)::bigint as "inQueue", sum(running)::bigint as "inProgress",
      sum(completed)::bigint as completed, sum(failed)::bigint as failed, sum(retried)::bigint as retried
      from job_counts where endpoint_id = any (:endpoint_ids) group by endpoint_id`,
  );
  // Of thousands of endpoints, many are looked at in a moment.
  const findCounts = batchLookups(
    async (endpoint_ids) =>
      new Map(
        (await selectCounts({ endpoint_ids })).map(({ endpoint_id, ...counts }) => [endpoint_id, counts]),
      ),
  );
  const countWaiting = statements.rows<{ waiting: number; late: number }>(
    `select count(*) as waiting, count(*) filter (where queued_at <= :queued_before) as late
      from (select queued_at from jobs where endpoint_id = :endpoint_id and low_priority = 0 and status = 'IN_QUEUE'
        order by account_id, position limit :limit) as heads`,
  );
  const countAllWaiting = statements.rows<{ count: number }>(
    `select count(*) as count from (select 1 from jobs
      where endpoint_id = :endpoint_id and status = 'IN_QUEUE' limit :limit) as waiting`,
  );
  const countAhead = statements.rows<{ ahead: number }>(
    `select count(*) as ahead from (select 1 from jobs where endpoint_id = :endpoint_id and status = 'IN_QUEUE'
      and (low_priority < :low_priority or (low_priority = :low_priority and position < :position))
      limit :limit) as ahead`,
  );
  const selectRunning = statements.arrays(
    `select ${JOB_SELECT} from jobs as job where job.status = 'IN_PROGRESS' order by job.endpoint_id, job.seq`,
  );
  const selectRunningOf = statements.arrays(
    `select ${JOB_SELECT} from jobs as job where job.status = 'IN_PROGRESS' and job.endpoint_id = ` +
      ':endpoint_id order by job.seq',
  );

  return {
    find: async (endpoint_id, seq) => {
      const [values] = await selectWhole({ endpoint_id, seq });
      return values === undefined ? undefined : jobWithPayloadsFromValues(values);
    },

    findOutline: async (endpoint_id, seq, max_bytes) => {
      const [values] = await selectOutline({ endpoint_id, seq, max_bytes });
      return values === undefined ? undefined : outlineFromValues(values, max_bytes);
    },

    readOutput: async (endpoint_id, seq) => {
      const [values] = await selectOutput({ endpoint_id, seq });
      const output = values?.[0] as string | null | undefined;
      return typeof output === 'string' ? Buffer.from(output) : undefined;
    },

    findAll: async (endpoint_id, seqs) =>
      (await selectSeveral({ endpoint_id, seqs })).map(jobWithPayloadsFromValues),

    list: async (endpoint_id, { status, before = Number.MAX_SAFE_INTEGER, maxRowsScanned, now }) => {
      // Running jobs are few and have an index, and so have waiting ones; where many wait, the scan through
      // all jobs soon meets them.
      const [waiting] =
        status === 'IN_QUEUE' ? await countAllWaiting({ endpoint_id, limit: maxRowsScanned }) : [];
      const isByStatus = status === 'IN_PROGRESS' || Number(waiting?.count) < maxRowsScanned;
      const hasStatus = status === undefined ? '' : `and job.status = '${status}'`;
      const scanned = `job.endpoint_id = :endpoint_id and job.seq < :before ${isByStatus ? hasStatus : ''}`;
      const [last] = await statements.rows<{ seq: number }>(
        `select job.seq from jobs as job where ${scanned} order by job.seq desc limit 1 offset :offset`,
      )({ endpoint_id, before, offset: maxRowsScanned - 1 });
      const jobs = await statements.rows<{ seq: number; bytes: number }>(
        `select job.seq, ${PAYLOAD_BYTES} as bytes from ${withRequests()}
          where ${scanned} and job.seq >= :last ${hasStatus}
          and (job.status in ('IN_QUEUE', 'IN_PROGRESS') or job.due_at > :now) order by job.seq desc`,
      )({ endpoint_id, before, last: last?.seq ?? 0, now });
      return { jobs, next: last?.seq };
    },

    counts: async (endpointId) =>
      (await findCounts(endpointId)) ?? { inQueue: 0, inProgress: 0, completed: 0, failed: 0, retried: 0 },

    countWaiting: async (endpoint_id, queued_before, limit) => ({
      waiting: 0,
      late: 0,
      ...(await countWaiting({ endpoint_id, queued_before, limit }))[0],
    }),

    countAhead: async ({ endpointId, lowPriority, position }, limit) => {
      const [row] = await countAhead({
        endpoint_id: endpointId,
        low_priority: lowPriority ? 1 : 0,
        position,
        limit,
      });
      return row?.ahead ?? 0;
    },

    listRunning: async (endpoint_id) =>
      (await (endpoint_id === undefined ? selectRunning() : selectRunningOf({ endpoint_id }))).map(
        jobFromValues,
      ),
  };
}
