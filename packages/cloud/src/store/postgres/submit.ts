import { MINUTE_MS } from '../../domain/history/rollup.ts';
import { isPastRetention } from '../../domain/job-records.ts';
import type { Idempotency, Job, JobWithPayloads } from '../../domain/job-records.ts';
import type { JobStore, SubmitResult } from '../job-store.ts';
import {
  INSERTED_COLUMNS,
  insertedValues,
  JOB_SELECT,
  JOB_SELECT_LENGTH,
  jobFromValues,
} from '../tables/jobs.table.ts';
import { columnArrays, unnest } from './column-arrays.ts';
import { CommitBatcher } from './commit-batcher.ts';
import { addCountsSql } from './job-counts.ts';
import { addHistorySql } from './history-sums.ts';
import { jobKey } from './job-key.ts';
import type { QueueContext } from './queue-context.ts';

/** Larger batches gain nothing and hold others up. */
const MAX_SUBMIT_BATCH = 500;

const GIVEN_COLUMNS = [...INSERTED_COLUMNS, 'request'] as const;

const ADDED_COUNTS = `select endpoint_id, :writer, count(*), 0, 0, 0, 0
  from added group by endpoint_id order by endpoint_id`;
const ADDED_HISTORY = `select endpoint_id, created_at / ${MINUTE_MS} * ${MINUTE_MS}, :writer,
    'requests', count(*), 0
  from added group by 1, 2 order by 1, 2`;

/**
 * Adds jobs: one statement, which is its own transaction. Nothing is added where the number or the
 * idempotency key is taken. `is true` has the planner make a hash table of what was added; as a plain
 * condition it would become a join, and go through all that was added for each request.
 */
const INSERT_JOBS = `with given as materialized (select * from ${unnest(GIVEN_COLUMNS)}),
  added as (insert into jobs (${INSERTED_COLUMNS.join(', ')}) select ${INSERTED_COLUMNS.join(', ')} from given
    on conflict do nothing returning endpoint_id, seq, created_at),
  requested as (insert into job_requests (endpoint_id, seq, request) select endpoint_id, seq, request from given
    where ((endpoint_id, seq) in (select endpoint_id, seq from added)) is true on conflict do nothing),
  counted as (${addCountsSql(ADDED_COUNTS)}),
  recorded as (${addHistorySql(ADDED_HISTORY)})
  select endpoint_id, seq from added`;

interface Submission {
  submitted: JobWithPayloads;
  idempotency: Idempotency | undefined;
}

/** Adds jobs to the queue. Submissions that arrive while a commit is on its way share the next one. */
export function submitJobs({ queue, statements, server, observer }: QueueContext): Pick<JobStore, 'submit'> {
  const insertJobs = queue.arrays(INSERT_JOBS, 'submit');
  const selectKeyHolder = statements.arrays(
    `select ${JOB_SELECT}, job.body_hash from jobs as job
      where job.endpoint_id = :endpoint_id and job.idempotency_key = :key`,
  );
  const selectId = statements.rows<{ id: string }>(
    'select id from jobs where endpoint_id = :endpoint_id and seq = :seq',
  );
  /** Only if it is still past its retention. */
  const deleteHolder = statements.rows(
    `with deleted as (delete from jobs
        where endpoint_id = :endpoint_id and seq = :seq and ended_at is not null and due_at <= :now
        returning endpoint_id, seq),
      chunks as (delete from job_chunks using deleted
        where job_chunks.endpoint_id = deleted.endpoint_id and job_chunks.seq = deleted.seq)
      delete from job_requests using deleted
        where job_requests.endpoint_id = deleted.endpoint_id and job_requests.seq = deleted.seq`,
  );

  async function insert(items: readonly Submission[]): Promise<SubmitResult[]> {
    const rows = items.map(({ submitted: { job, payloads }, idempotency }) => ({
      ...insertedValues(job, idempotency),
      request: payloads.request,
    }));
    const added = new Set(
      (await insertJobs({ ...columnArrays(rows, GIVEN_COLUMNS), writer: `${server} submit` })).map(
        ([endpointId, seq]) => jobKey(endpointId as string, seq as number),
      ),
    );
    return Promise.all(
      items.map(async (item) =>
        added.has(jobKey(item.submitted.job.endpointId, item.submitted.job.seq))
          ? {
              job: item.submitted.job,
              created: true,
              seenByTakes: false,
              bodyHash: item.idempotency?.bodyHash ?? null,
            }
          : existing(item),
      ),
    );
  }

  /**
   * It was not added: the idempotency key is taken, another server counted to the same number, or it was
   * submitted before.
   */
  async function existing(item: Submission): Promise<SubmitResult> {
    const { job } = item.submitted;
    const holder = item.idempotency && (await keyHolder(job, item.idempotency.key));
    if (holder !== undefined && isPastRetention(holder.job, job.createdAt)) {
      await deleteHolder({
        endpoint_id: holder.job.endpointId,
        seq: holder.job.seq,
        now: job.createdAt,
      });
      const [added] = await insert([item]);
      return added as SubmitResult;
    }
    if (holder !== undefined && holder.job.id !== job.id)
      return { job: holder.job, created: false, seenByTakes: false, bodyHash: holder.bodyHash };
    const [found] = await selectId({ endpoint_id: job.endpointId, seq: job.seq });
    return { job, created: found?.id === job.id, seenByTakes: false, bodyHash: null };
  }

  async function keyHolder(job: Job, key: string): Promise<{ job: Job; bodyHash: string } | undefined> {
    const [values] = await selectKeyHolder({ endpoint_id: job.endpointId, key });
    return values && { job: jobFromValues(values), bodyHash: values[JOB_SELECT_LENGTH] as string };
  }

  const submissions = new CommitBatcher(insert, MAX_SUBMIT_BATCH, observer);
  return { submit: (submitted, idempotency) => submissions.add({ submitted, idempotency }) };
}
