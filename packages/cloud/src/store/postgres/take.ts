import type { Claim, TakenJob, TakeRequest } from '../../domain/job-records.ts';
import { batchLookups } from '../../support/lookup-batches.ts';
import type { JobStore } from '../job-store.ts';
import { splitLine, WAITING_FIELDS, waitingJobFromFields, waitingJobLine } from '../tables/jobs.table.ts';
import { columnArrays } from './column-arrays.ts';
import { addCountsSql } from './job-counts.ts';
import type { QueueContext } from './queue-context.ts';

/**
 * Hands out jobs: one statement, which is its own transaction.
 *
 * Jobs go in this order: normal before low priority, within that the accounts in turn, within an account by
 * position. `queues` steps from one queue (priority and account) to the next over the index `jobs_waiting`,
 * without counting jobs. Of each queue as many jobs are locked as are wanted; those that another server has
 * locked are skipped, so servers never wait for each other and never take the same job. `picked` pairs jobs
 * with claims by unnesting arrays: reading an element of a text array by its index walks over all before it.
 * The jobs of one account come in their order; to sort them all the same took a tenth of a take.
 * A locked row is updated at its place (`ctid`), without an index. One that another transaction wrote between the
 * snapshot of the statement and the lock is at a place that the statement does not see yet: it waits for the next
 * take. So counts are taken from the rows that were updated.
 *
 * The commit does not wait for the disk: after a crash that undoes a take the job waits again, and whoever
 * has it finds that its lease is gone. The end of the job waits for the disk, and brings the take there with
 * it.
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
    select queues.low_priority, queues.account_id, head.place, head.turn
    from (select set_config('synchronous_commit', 'off', true)) as commit, queues, lateral (
      select place, row_number() over () as turn from (
        select ctid as place from jobs where endpoint_id = :endpoint_id and status = 'IN_QUEUE'
          and low_priority = queues.low_priority and account_id = queues.account_id
        order by position, seq limit :wanted for update skip locked) as locked) as head
  ), picked as materialized (
    select place, claim, worker_id, lease from unnest(
      case when (select count(*) from queues) = 1 then (select array_agg(place) from heads)
        else (select array_agg(place order by low_priority, turn, account_id <= :served_last, account_id) from heads)
      end,
      :worker_ids::text[], :leases::text[]) with ordinality as pair (place, worker_id, lease, claim)
    where place is not null and lease is not null
  ), taken as (
    update jobs as job set status = 'IN_PROGRESS', attempt = job.attempt + 1, worker_id = picked.worker_id,
      lease = picked.lease,
      taken_at = :taken_at::bigint,
      due_at = least(:lease_check_at::bigint, job.ttl_at, :taken_at::bigint + nullif(job.execution_timeout, 0))
    from picked, job_requests as request
    where job.ctid = picked.place and request.endpoint_id = job.endpoint_id and request.seq = job.seq
    returning ${waitingJobLine(['picked.claim', 'job.ctid'])} as line, request.request
  ), counted as (${addCountsSql(
    'select :endpoint_id, :writer, -count(*), count(*), 0, 0, 0 from taken having count(*) > 0',
  )})
  select line, request from taken`;

const CLAIM = WAITING_FIELDS;
const CTID = CLAIM + 1;

export function takeJobs({
  queue,
  server,
  handedOut,
}: QueueContext): Pick<JobStore, 'take'> & Required<Pick<JobStore, 'hasWaiting'>> {
  const take = queue.arrays(TAKE_JOBS, 'take');
  /** The order has it read `jobs_waiting`, and no index of more jobs. */
  const selectWaiting = queue.rows<{ endpoint_id: string }>(
    `select asked.endpoint_id from unnest(:endpoint_ids::text[]) as asked (endpoint_id), lateral (
        select 1 from jobs where endpoint_id = asked.endpoint_id and status = 'IN_QUEUE'
        order by low_priority, account_id, position limit 1) as waiting`,
    'any waiting',
  );
  const findWaiting = batchLookups(
    async (endpoint_ids) =>
      new Map((await selectWaiting({ endpoint_ids })).map(({ endpoint_id }) => [endpoint_id, true])),
  );
  const hasWaiting = async (endpointId: string): Promise<boolean> => (await findWaiting(endpointId)) === true;
  /** The account that was served last on each endpoint: the next take begins after it. */
  const servedLast = new Map<string, string>();

  return {
    hasWaiting,

    take: async (endpointId, request: TakeRequest) => {
      const claims = request.claims();
      if (claims.length === 0) return [];
      const rows = await take({
        endpoint_id: endpointId,
        wanted: claims.length,
        served_last: servedLast.get(endpointId) ?? '',
        ...columnArrays(
          claims.map(({ workerId, lease }) => ({ worker_ids: workerId, leases: lease })),
          ['worker_ids', 'leases'],
        ),
        taken_at: request.takenAt,
        lease_check_at: request.leaseCheckAt,
        writer: `${server} take`,
      });
      const taken = rows
        .map(([line, text]) => ({ fields: splitLine(line as string), request: text as string }))
        .sort((one, other) => claimOf(one.fields) - claimOf(other.fields))
        .map(({ fields, request: text }): TakenJob => {
          const waiting = waitingJobFromFields(endpointId, fields);
          // The statement has counted this attempt. The rule is asked once more, so that both cannot drift apart unseen.
          waiting.attempt -= 1;
          const { job } = request.startAttempt(waiting, claims[claimOf(fields) - 1] as Claim);
          handedOut.add({ job, ctid: fields[CTID] as string });
          return { job, request: text };
        });
      const last = taken.at(-1);
      if (last !== undefined) servedLast.set(endpointId, last.job.accountId);
      // Jobs that still wait were locked by somebody else, or came meanwhile.
      if (taken.length < claims.length && request.onLockedSkipped !== undefined)
        if (await hasWaiting(endpointId)) request.onLockedSkipped();
      return taken;
    },
  };
}

/** The number of the claim that a job goes to, from 1. */
function claimOf(fields: readonly string[]): number {
  return Number(fields[CLAIM]);
}
