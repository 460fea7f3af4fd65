import type { JobWithPayloads } from '../../domain/job-records.ts';
import {
  JOB_SELECT,
  jobFromValues,
  JOBS_WITH_LEASES,
  listSource,
  PAYLOAD_BYTES,
  PAYLOAD_COLUMNS,
} from '../tables/job-rows.ts';
import type { JobStore } from '../job-store.ts';
import type { Value } from '../sql.ts';
import { heartbeatFromRow } from '../tables/heartbeat-rows.ts';
import { JOB_READ_SELECT_LENGTH, JOB_READ_SELECT, jobFromRead } from './lease-batches.ts';
import type { LeaseBatches } from './lease-batches.ts';
import { positionSql, WAITING_JOBS } from './queue-batches.ts';
import type { PoolQueries } from './pool-queries.ts';

/** What can be asked of the queue without changing it. Whoever meets jobs in a bundle has it opened first. */
export function jobReads(
  queries: PoolQueries,
  bundles: LeaseBatches,
): Pick<
  JobStore,
  | 'find'
  | 'findAll'
  | 'listChunks'
  | 'list'
  | 'counts'
  | 'countWaiting'
  | 'countAhead'
  | 'listRunning'
  | 'workers'
> {
  return {
    find: (endpointId, seq) =>
      bundles.splitAndRetry(async () => {
        const [values] = await queries.arrays(
          `select ${JOB_READ_SELECT}, ${PAYLOAD_COLUMNS} from ${JOBS_WITH_LEASES} where job.endpoint_id = $1 and job.seq = $2`,
          [endpointId, seq],
        );
        return values === undefined ? undefined : jobWithPayloadsFromValues(values);
      }),

    listChunks: async (endpointId, seq, after, bytes) => {
      const rows = await queries.rows(
        `select number, chunk from (select number, chunk, sum(length(chunk)) over (order by number) - length(chunk) as before from job_chunks where endpoint_id = $1 and seq = $2 and number > $3) as sized
          where before = 0 or before + length(chunk) <= $4 order by number`,
        [endpointId, seq, after, bytes],
      );
      return rows.map((row) => ({ number: row['number'] as number, text: row['chunk'] as string }));
    },

    list: async (endpointId, { status, before = Number.MAX_SAFE_INTEGER, maxRowsScanned, now }) => {
      if (status === 'IN_QUEUE' || status === 'IN_PROGRESS') await bundles.split({ endpointId });
      const [waiting] =
        status === 'IN_QUEUE'
          ? await queries.rows(
              `select count(*) as count from (select 1 from ${WAITING_JOBS} as waiting where endpoint_id = $1 limit $2) as few`,
              [endpointId, maxRowsScanned],
            )
          : [];
      const {
        rows: table,
        jobs,
        only,
      } = listSource(status, Number(waiting?.['count']) < maxRowsScanned, WAITING_JOBS);
      const [last] = await queries.rows(
        `select seq from ${table} where endpoint_id = $1 and seq < $2 order by seq desc limit 1 offset $3`,
        [endpointId, before, maxRowsScanned - 1],
      );
      const next = last?.['seq'] as number | undefined;
      const found = await queries.rows(
        `select job.seq, ${PAYLOAD_BYTES} as bytes from ${jobs} where job.endpoint_id = $1 and job.seq < $2 and job.seq >= $3 ${only} and (job.status = 'IN_QUEUE' or job.due_at > $4) order by job.seq desc`,
        [endpointId, before, next ?? 0, now],
      );
      return {
        jobs: found.map((row) => ({ seq: row['seq'] as number, bytes: row['bytes'] as number })),
        next,
      };
    },

    findAll: (endpointId, seqs) =>
      bundles.splitAndRetry(async () =>
        (
          await queries.arrays(
            `select ${JOB_READ_SELECT}, ${PAYLOAD_COLUMNS} from ${JOBS_WITH_LEASES} where job.endpoint_id = $1 and job.seq = any($2::bigint[]) order by job.seq desc`,
            [endpointId, seqs],
          )
        ).map(jobWithPayloadsFromValues),
      ),

    counts: async (endpointId) => {
      const [row] = await queries.rows(
        `select coalesce(sum(queued), 0)::bigint as queued, coalesce(sum(running), 0)::bigint as running, coalesce(sum(completed), 0)::bigint as completed,
          coalesce(sum(failed), 0)::bigint as failed, coalesce(sum(retried), 0)::bigint as retried from job_counts where endpoint_id = $1`,
        [endpointId],
      );
      return {
        inQueue: Number(row?.['queued']),
        inProgress: Number(row?.['running']),
        completed: Number(row?.['completed']),
        failed: Number(row?.['failed']),
        retried: Number(row?.['retried']),
      };
    },

    countWaiting: async (endpointId, queuedBefore, limit) => {
      const [row] = await queries.rows(
        `select least(coalesce(sum(count), 0), $3) as waiting, least(coalesce(sum(count) filter (where queued_at <= $2), 0), $3) as late
          from (select queued_at, cardinality(seqs) - gone as count from job_places where endpoint_id = $1 and low_priority = 0 order by account_id, position limit $3) as heads`,
        [endpointId, queuedBefore, limit],
      );
      return { waiting: Number(row?.['waiting']), late: Number(row?.['late']) };
    },

    countAhead: async (job, limit) => {
      const [row] = await queries.rows(
        `select least(coalesce(sum(count), 0), $4) as before from (
          select case when low_priority < $2 or seqs[cardinality(seqs)] < $3 then cardinality(seqs) - gone else (select count(*) from unnest(seqs[gone + 1:]) as before (seq) where ${positionSql('before.seq', 'job_places.')} < $3) end as count
          from job_places where endpoint_id = $1 and (low_priority < $2 or (low_priority = $2 and position < $3)) limit $4) as places`,
        [job.endpointId, job.lowPriority ? 1 : 0, job.position, limit],
      );
      return Number(row?.['before']);
    },

    listRunning: async (endpointId) => {
      await bundles.split(endpointId === undefined ? 'all' : { endpointId });
      return (
        await queries.arrays(
          `select ${JOB_SELECT} from job_leases as lease join jobs as job on job.endpoint_id = lease.endpoint_id and job.seq = lease.seq where $1::text is null or lease.endpoint_id = $1`,
          [endpointId ?? null],
        )
      ).map(jobFromValues);
    },

    workers: async (endpointId, seenSince) =>
      (
        await queries.rows('select * from job_workers where endpoint_id = $1 and seen_at >= $2', [
          endpointId,
          seenSince,
        ])
      ).map(heartbeatFromRow),
  };
}

function jobWithPayloadsFromValues(values: readonly Value[]): JobWithPayloads {
  return {
    job: jobFromRead(values).job,
    payloads: {
      request: values[JOB_READ_SELECT_LENGTH] as string,
      output: values[JOB_READ_SELECT_LENGTH + 1] as string | null,
      error: values[JOB_READ_SELECT_LENGTH + 2] as string | null,
    },
  };
}
