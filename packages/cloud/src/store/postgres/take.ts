import type { Claim, Job, TakenJob, TakeRequest } from '../../domain/job-records.ts';
import type { JobStore } from '../job-store.ts';
import { JOB_SELECT, JOB_SELECT_LENGTH, jobFromValues } from '../tables/jobs.table.ts';
import { addCountsSql } from './job-counts.ts';
import type { QueueContext } from './queue-context.ts';

/**
 * Hands out jobs: one statement, which is its own transaction.
 *
 * Jobs go in this order: normal before low priority, within that the accounts in turn, within an account by position.
 * `queues` steps from one queue (priority and account) to the next over the index `jobs_waiting`, without counting jobs.
 * Of each queue as many jobs are locked as are wanted; those that another server holds a lock on are skipped, so servers
 * never wait for each other and never take the same job. Where that leaves fewer than there are, `skipped` says so.
 *
 * The commit does not wait for the disk: after a crash that undoes a take the job waits again, and whoever has it finds that
 * its lease is gone. The end of the job waits for the disk, and brings the take there with it.
 *
 * When the lease is due agrees with `dueAt` in domain/job-transitions.ts.
 */
export const TAKE_JOBS = `with recursive queues as (
    (select low_priority, account_id from jobs where endpoint_id = :endpoint_id and status = 'IN_QUEUE'
      order by low_priority, account_id limit 1)
    union all
    select following.low_priority, following.account_id from queues, lateral (
      select low_priority, account_id from jobs where endpoint_id = :endpoint_id and status = 'IN_QUEUE'
        and (low_priority, account_id) > (queues.low_priority, queues.account_id)
      order by low_priority, account_id limit 1) as following
  ), heads as materialized (
    select queues.low_priority, queues.account_id, head.seq, head.position from queues, lateral (
      select seq, position from jobs where endpoint_id = :endpoint_id and status = 'IN_QUEUE'
        and low_priority = queues.low_priority and account_id = queues.account_id
      order by position, seq limit :wanted for update skip locked) as head
  ), in_turn as (
    select low_priority, account_id, seq, row_number() over (partition by low_priority, account_id order by position, seq) as turn
    from heads
  ), picked as materialized (
    select seq, (row_number() over (order by low_priority, turn, account_id <= :served_last, account_id))::int as claim
    from in_turn order by low_priority, turn, account_id <= :served_last, account_id limit :wanted
  ), taken as (
    update jobs as job set status = 'IN_PROGRESS', attempt = job.attempt + 1, worker_id = (:worker_ids::text[])[picked.claim],
      lease = (:leases::text[])[picked.claim], taken_at = :taken_at::bigint,
      due_at = least(:lease_check_at::bigint, job.ttl_at, :taken_at::bigint + nullif(job.execution_timeout, 0))
    from picked, job_requests as request
    where job.endpoint_id = :endpoint_id and job.seq = picked.seq and request.endpoint_id = :endpoint_id and request.seq = picked.seq
    returning ${JOB_SELECT}, request.request, picked.claim
  ), counted as (${addCountsSql('select :endpoint_id, :lane, -count(*), count(*), 0, 0, 0 from picked having count(*) > 0')})
  select taken.*, skipped.skipped from (select set_config('synchronous_commit', 'off', true)) as commit, (
    select (select count(*) from (select 1 from jobs where endpoint_id = :endpoint_id and status = 'IN_QUEUE' limit :wanted) as waiting)
      > (select count(*) from picked) as skipped) as skipped
  left join taken on true order by taken.claim`;

export function takeJobs({ queue, server, handedOut }: QueueContext): Pick<JobStore, 'take'> {
  const take = queue.arrays(TAKE_JOBS, 'take');
  /** The account that was served last on each endpoint: the next take begins after it. */
  const servedLast = new Map<string, string>();

  return {
    take: async (endpointId, request: TakeRequest) => {
      const claims = request.claims();
      if (claims.length === 0) return [];
      const rows = await take({
        endpoint_id: endpointId,
        wanted: claims.length,
        served_last: servedLast.get(endpointId) ?? '',
        worker_ids: claims.map(({ workerId }) => workerId),
        leases: claims.map(({ lease }) => lease),
        taken_at: request.takenAt,
        lease_check_at: request.leaseCheckAt,
        lane: `${server} take`,
      });
      const [first] = rows;
      // Without a job there is one row, which only says whether others were skipped.
      const taken = rows
        .filter(([seq]) => seq !== null)
        .map(
          (values, index): TakenJob => ({
            job: request.startAttempt(asWaiting(jobFromValues(values)), claims[index] as Claim).job,
            request: values[JOB_SELECT_LENGTH] as string,
          }),
        );
      for (const { job } of taken) handedOut.add(job);
      const last = taken.at(-1);
      if (last !== undefined) servedLast.set(endpointId, last.job.accountId);
      if (taken.length < claims.length && (first?.at(-1) as unknown) === true) request.onLockedSkipped?.();
      return taken;
    },
  };
}

/** A job that was just taken, as it waited: the rule of a take is asked once more, so that it and the statement cannot drift apart unseen. */
function asWaiting(job: Job): Job {
  return {
    ...job,
    status: 'IN_QUEUE',
    attempt: job.attempt - 1,
    lease: null,
    workerId: null,
    takenAt: null,
    dueAt: job.ttlAt,
  };
}
