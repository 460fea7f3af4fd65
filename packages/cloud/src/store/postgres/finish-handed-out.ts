import { minuteOf } from '../../domain/history/job-history.ts';
import { durationBucket } from '../../domain/history/rollup.ts';
import type { Job, JobChange } from '../../domain/job-records.ts';
import { isFinish } from '../job-row-changes.ts';
import type { JobChangeRequest, JobChangeResult } from '../job-store.ts';
import { jobValues } from '../tables/jobs.table.ts';
import { columnArrays, unnest } from './column-arrays.ts';
import { CommitBatcher } from './commit-batcher.ts';
import type { HandedOutJob } from './handed-out-jobs.ts';
import { addCountsSql } from './job-counts.ts';
import { addHistorySql } from './history-sums.ts';
import { jobKey } from './job-key.ts';
import type { QueueContext } from './queue-context.ts';
import { withTransactionRetries } from './transactions.ts';

const MAX_BATCH = 2_000;
/** A larger result goes the other way, so that a batch has at most 8 MB. */
const MAX_RESULT_CHARS = 4 * 1024;

const GIVEN_COLUMNS = [
  'row_ctid',
  'row_xmin',
  'held_lease',
  'status',
  'taken_at',
  'ended_at',
  'due_at',
  'output',
  'error',
  'minute',
  'wait_bucket',
  'wait_ms',
  'run_bucket',
  'run_ms',
] as const;

/**
 * Ends jobs whose rows are unchanged since they were handed out. Returns no rows if all of them were, and
 * otherwise those that were. A row is found at its place (`ctid`), without an index; a version of it that another
 * transaction wrote meanwhile has another `xmin`, wherever it is, and another job at that place another lease. By
 * their keys, and with their times to live compared, ends took a third more of PostgreSQL's time.
 */
export const FINISH_HANDED_OUT = `with finished as (
    update jobs set status = given.status, lease = null, taken_at = given.taken_at, ended_at = given.ended_at,
      due_at = given.due_at, output = given.output, error = given.error
    from ${unnest(GIVEN_COLUMNS)}
    where jobs.ctid = given.row_ctid and jobs.xmin = given.row_xmin and jobs.lease = given.held_lease
    returning jobs.endpoint_id, jobs.seq, jobs.status, given.minute, given.wait_bucket, given.wait_ms,
      given.run_bucket, given.run_ms
  ), counted as (${addCountsSql(
    `select endpoint_id, :lane, 0, -count(*), count(*) filter (where status = 'COMPLETED'),
      count(*) filter (where status in ('FAILED', 'TIMED_OUT')), 0
      from finished group by endpoint_id order by endpoint_id`,
  )}), times as (
    select endpoint_id, minute, status, wait_bucket, run_bucket, count(*) as count,
      sum(wait_ms) as wait_ms, sum(run_ms) as run_ms
    from finished group by endpoint_id, minute, status, wait_bucket, run_bucket
  ), recorded as (${addHistorySql(
    `select endpoint_id, minute, :lane, added.name, sum(count), sum(added.total) from times,
      lateral (values (status, 0), ('wait/' || wait_bucket, wait_ms), ('run/' || run_bucket, run_ms))
        as added (name, total)
      group by 1, 2, 4 order by 1, 2, 4`,
  )})
  select case when (select count(*) from finished) < :expected::int
    then (select coalesce(array_agg(endpoint_id || ' ' || seq), '{}') from finished) end`;

/** An end as the rule decided it on the job as it was handed out. */
interface ExpectedFinish extends HandedOutJob {
  change: JobChange;
}

/**
 * The usual end of a job, in one statement. A transaction that locks and reads its row first takes half as long
 * again.
 *
 * The row remains the source of truth. The job as it was handed out is only an assumption: the transition is
 * computed from it, and the statement writes the result only where the row is unchanged. Where it is not, or
 * where more has to be written (a webhook, a large result), the answer is undefined, and the change has to be
 * made under a lock.
 */
export function finishHandedOut({
  queue,
  server,
  handedOut,
  observer,
}: QueueContext): (requests: readonly JobChangeRequest[]) => Promise<(JobChangeResult | undefined)[]> {
  const finish = queue.arrays(FINISH_HANDED_OUT, 'finish handed out');
  const batches = new CommitBatcher<ExpectedFinish, JobChangeResult | undefined>(
    async (expected) => {
      const rows = expected.toSorted(byKey).map((one) => ({
        ...jobValues(one.change.job),
        row_ctid: one.ctid,
        row_xmin: one.xmin,
        held_lease: one.job.lease,
        ...finishedTimes(one.change.job),
        output: one.change.output ?? null,
        error: one.change.error ?? null,
      }));
      const values = {
        ...columnArrays(rows, GIVEN_COLUMNS),
        expected: expected.length,
        lane: `${server} finish`,
      };
      const [answer] = await withTransactionRetries(() => finish(values));
      const some = answer?.[0] as readonly string[] | null;
      const finished = some === null ? undefined : new Set(some);
      return expected.map(({ job, change }) =>
        finished?.has(jobKey(job.endpointId, job.seq)) === false
          ? undefined
          : { before: job, after: change.job, changed: true },
      );
    },
    MAX_BATCH,
    observer,
  );

  return async (requests) => {
    const expected = requests.map((request): ExpectedFinish | undefined => {
      const one = handedOut.remove(request.endpointId, request.seq);
      const change = one && request.next(one.job);
      return one && change && isPlainFinish(one.job, change) ? { ...one, change } : undefined;
    });
    const results = (await batches.addAll(expected.filter((one) => one !== undefined))).values();
    return expected.map((one) => one && results.next().value);
  };
}

/** Rows are locked in the order of their keys, as everywhere. */
function byKey({ job: one }: ExpectedFinish, { job: other }: ExpectedFinish): number {
  if (one.endpointId !== other.endpointId) return one.endpointId < other.endpointId ? -1 : 1;
  return one.seq - other.seq;
}

function isPlainFinish(before: Job, change: JobChange): boolean {
  return (
    isFinish(before, change) &&
    change.remove !== true &&
    change.clearChunks !== true &&
    change.delivery === undefined &&
    (change.output?.length ?? 0) + (change.error?.length ?? 0) <= MAX_RESULT_CHARS
  );
}

/**
 * What the end adds to the history of the endpoint: the same as `historyDeltas`, for the statement to sum up.
 */
function finishedTimes({
  queuedAt,
  takenAt,
  endedAt,
}: Job): Record<'minute' | 'wait_bucket' | 'wait_ms' | 'run_bucket' | 'run_ms', number> {
  const [taken, ended] = [takenAt ?? queuedAt, endedAt ?? queuedAt];
  const [waited, ran] = [Math.max(0, taken - queuedAt), Math.max(0, ended - taken)];
  return {
    minute: minuteOf(ended),
    wait_bucket: durationBucket(waited),
    wait_ms: waited,
    run_bucket: durationBucket(ran),
    run_ms: ran,
  };
}
