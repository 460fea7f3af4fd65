import type { JobWithPayloads } from '../../domain/job-records.ts';
import {
  JOB_SELECT_LENGTH,
  JOB_SELECT,
  jobFromValues,
  JOBS_WITH_LEASES,
  listSource,
  PAYLOAD_BYTES,
  PAYLOAD_COLUMNS,
} from '../tables/job-rows.ts';
import type { JobStore } from '../job-store.ts';
import type { Row, Value } from '../sql.ts';
import { heartbeatFromRow } from '../tables/heartbeat-rows.ts';
import type { GroupCommit } from './group-commit.ts';
import type { InlineJobs } from './inline-jobs.ts';
import { WAITING_JOBS } from './waiting-jobs.ts';
import type { Statements } from './statements.ts';

/** What can be asked of the queue without changing it. Only what goes through many jobs wants them all in rows. */
export function jobReads(
  statements: Statements,
  group: GroupCommit,
  notes: InlineJobs,
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
  const selectWhole = statements.selectArrays(
    `select ${JOB_SELECT}, ${PAYLOAD_COLUMNS} from ${JOBS_WITH_LEASES} where job.seq = ? and job.endpoint_id = ?`,
  );
  const find = (endpointId: string, seq: number): JobWithPayloads | undefined => {
    const noted = notes.find(endpointId, seq);
    if (noted !== undefined) return noted;
    const values = selectWhole.get(seq, endpointId);
    return values === undefined ? undefined : jobWithPayloadsFromValues(values);
  };

  return {
    find: (endpointId, seq) => group.read(() => find(endpointId, seq)),

    listChunks: (endpointId, seq, after, bytes) =>
      group.read(() => {
        const found: { number: number; text: string }[] = [];
        let size = 0;
        for (const row of statements
          .select(
            'select number, chunk from job_chunks where endpoint_id = ? and seq = ? and number > ? order by number',
          )
          .iterate(endpointId, seq, after)) {
          const text = row['chunk'] as string;
          size += text.length;
          if (found.length > 0 && size > bytes) break;
          found.push({ number: row['number'] as number, text });
        }
        return found;
      }),

    list: (endpointId, { status, before = Number.MAX_SAFE_INTEGER, maxRowsScanned, now }) =>
      group.readFlushed(() => {
        const waiting =
          status === 'IN_QUEUE'
            ? statements
                .select(
                  `select count(*) as count from (select 1 from ${WAITING_JOBS} where endpoint_id = ? limit ?)`,
                )
                .get(endpointId, maxRowsScanned)
            : undefined;
        const {
          rows: table,
          jobs,
          only,
        } = listSource(status, Number(waiting?.['count']) < maxRowsScanned, WAITING_JOBS);
        const last = statements
          .select(
            `select seq from ${table} where endpoint_id = ? and seq < ? order by seq desc limit 1 offset ?`,
          )
          .get(endpointId, before, maxRowsScanned - 1);
        const next = last?.['seq'] as number | undefined;
        const found = statements
          .select(
            `select job.seq, ${PAYLOAD_BYTES} as bytes from ${jobs} where job.endpoint_id = ? and job.seq < ? and job.seq >= ? ${only} and (job.status = 'IN_QUEUE' or job.due_at > ?) order by job.seq desc`,
          )
          .all(endpointId, before, next ?? 0, now);
        return {
          jobs: found.map((row) => ({ seq: row['seq'] as number, bytes: row['bytes'] as number })),
          next,
        };
      }),

    findAll: (endpointId, seqs) =>
      group.read(() =>
        [...seqs]
          .sort((one, other) => other - one)
          .map((seq) => find(endpointId, seq))
          .filter((whole) => whole !== undefined),
      ),

    counts: (endpointId) =>
      group.readFlushed(() => {
        const sum = statements
          .select(
            'select coalesce(sum(queued), 0) as "inQueue", coalesce(sum(running), 0) as "inProgress", coalesce(sum(completed), 0) as completed, coalesce(sum(failed), 0) as failed, coalesce(sum(retried), 0) as retried from job_counts where endpoint_id = ?',
          )
          .get(endpointId) as {
          inQueue: number;
          inProgress: number;
          completed: number;
          failed: number;
          retried: number;
        };
        return { ...sum };
      }),

    countWaiting: (endpointId, queuedBefore, limit) =>
      group.read(() => {
        const found = statements
          .select(
            `select min(coalesce(sum(size), 0), ?3) as waiting, min(coalesce(sum(size) filter (where queued_at <= ?1), 0), ?3) as late
            from (select queued_at, size from job_waiting where endpoint_id = ?2 and low_priority = 0 order by account_id, position limit ?3)`,
          )
          .get(queuedBefore, endpointId, limit) as { waiting: number; late: number };
        return { ...found };
      }),

    countAhead: (job, limit) =>
      group.read(() => {
        const { before } = statements
          .select(
            `select min(coalesce(sum(count), 0), ?4) as before from (
            select case when seqs is null or low_priority < ?2 or json_extract(seqs, '$[#-1]') < ?3 then size else (select count(*) from json_each(seqs) where value < ?3) end as count
            from job_waiting where endpoint_id = ?1 and (low_priority < ?2 or (low_priority = ?2 and position < ?3)) limit ?4)`,
          )
          .get(job.endpointId, job.lowPriority ? 1 : 0, job.position, limit) as { before: number };
        return before;
      }),

    listRunning: (endpointId) =>
      group.readFlushed(() => {
        const of = `select ${JOB_SELECT} from job_leases as lease join jobs as job on job.seq = lease.seq`;
        const found =
          endpointId === undefined
            ? statements.selectArrays(of).all()
            : statements.selectArrays(`${of} where lease.endpoint_id = ?`).all(endpointId);
        return found.map(jobFromValues);
      }),

    workers: (endpointId, seenSince) =>
      group.read(() =>
        (
          statements
            .select('select * from job_workers where endpoint_id = ? and seen_at >= ?')
            .all(endpointId, seenSince) as Row[]
        ).map(heartbeatFromRow),
      ),
  };
}

function jobWithPayloadsFromValues(values: readonly Value[]): JobWithPayloads {
  return {
    job: jobFromValues(values),
    payloads: {
      request: values[JOB_SELECT_LENGTH] as string,
      output: values[JOB_SELECT_LENGTH + 1] as string | null,
      error: values[JOB_SELECT_LENGTH + 2] as string | null,
    },
  };
}
