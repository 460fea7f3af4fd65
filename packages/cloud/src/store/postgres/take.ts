import type { Pool } from 'pg';
import { LEASE_COLUMNS, WAITING_FACTS, WAITING_JOB, waitingJobFrom } from '../job-rows.ts';
import type { Claim, TakenJob, TakeTerms } from '../jobs.ts';
import type { Value } from '../sql.ts';
import { columnsOf } from './arrays.ts';
import { ADD_COUNTS } from './counts.ts';
import { translated } from './database.ts';

/** When a lease that is just written has to be looked at. It agrees with what the rule of a take makes of the job. */
export function leaseDue(lookAt: string, takenAt: string): string {
  return `least(${lookAt}, ttl_at, ${takenAt} + nullif(execution_timeout, 0))`;
}

/**
 * Hands out jobs: one statement, which is its own transaction.
 *
 * Places leave the queue in the order in which their jobs go: normal before low priority, within
 * that the accounts in turn, within an account by position. The recursion steps from one queue
 * (priority and account) to the next over the index, so queues are found without counting jobs.
 * Places that somebody else has in hands are passed over: another take, which may not want all that it has locked, or a
 * change, which makes the place anew. Where that leaves claims without a job, a last row without a job tells it. The first job gets the first claim.
 *
 * Each job is looked up by its key: the limit keeps the planner from going through all jobs of the endpoint instead,
 * which it may prefer as long as it believes that there are few.
 *
 * What holds no space of a job comes as one text: a dozen columns for each job cost the driver as much as all else that a take costs here.
 *
 * All of it sees one moment. Whoever changes a waiting job makes its place anew, so a place that
 * can be locked has the job beside it as it was at that moment.
 */
const TAKE = `with recursive queues as (
    (select low_priority, account_id from job_waiting where endpoint_id = $1 order by low_priority, account_id limit 1)
    union all
    select following.low_priority, following.account_id from queues,
      lateral (select low_priority, account_id from job_waiting where endpoint_id = $1 and (low_priority, account_id) > (queues.low_priority, queues.account_id)
        order by low_priority, account_id limit 1) as following
  ), heads as (
    select head.* from queues,
      lateral (select place.*, row_number() over (order by position, seq) as turn from (
        select ctid as at, low_priority, account_id, position, seq from job_waiting where endpoint_id = $1 and low_priority = queues.low_priority and account_id = queues.account_id
        order by position, seq limit $2 for update skip locked) as place) as head
  ), picked as materialized (select at, seq from heads order by low_priority, turn, account_id <= $8, account_id limit $2),
  gone as (delete from job_waiting where ctid = any (array(select at from picked))),
  found as materialized (
    select job.*, claim.worker_id, claim.token, claim.turn from unnest(array(select seq from picked), $3::text[], $4::text[]) with ordinality as claim (place, worker_id, token, turn),
      lateral (select ${WAITING_JOB} from jobs as job where job.endpoint_id = $1 and job.seq = claim.place limit 1) as job
  ), begun as (
    insert into job_leases (${LEASE_COLUMNS.join(', ')})
    select seq, $1, worker_id, token, attempt + 1, $5::bigint, ${leaseDue('$6::bigint', '$5::bigint')} from found
  ), counted as (${ADD_COUNTS('select $1, $7, -count(*), count(*), 0, 0, 0 from picked having count(*) > 0')})
  select concat_ws(' ', ${WAITING_FACTS.join(', ')}), webhook, request, turn from found
  union all select null, null, null, null where (select count(*) from picked) < $2
    and exists (select 1 from job_waiting where endpoint_id = $1 and ctid <> all (array(select at from picked)))
  order by turn`;

type TakenRow = [facts: string, webhook: string | null, request: string, turn: number];
const TEXTS = ['id', 'account_id'];
/** Where among the facts numbers are. */
const NUMBERS = WAITING_FACTS.flatMap((fact, index) => (TEXTS.includes(fact) ? [] : [index]));

/** `last`: the account that was served last; the next one goes first. */
export async function takeJobs(lanes: Pool, server: string, endpointId: string, terms: TakeTerms, last: string): Promise<TakenJob[]> {
  const { takenAt, lookAt, begin } = terms;
  const claims = terms.claims();
  const values = [endpointId, claims.length, ...columnsOf(claims.map(({ workerId, lease }) => [workerId, lease]), 2), takenAt, lookAt, `${server} take`, last];
  const { rows } = await translated(lanes.query<TakenRow | null[]>({ name: 'take', text: TAKE, values, rowMode: 'array' }));
  if (rows.at(-1)?.at(-1) === null) {
    rows.pop();
    terms.onPassedOver?.();
  }
  return (rows as TakenRow[]).map(([facts, webhook, request, turn]) => {
    const known: Value[] = facts.split(' ');
    for (const index of NUMBERS) known[index] = Number(known[index]);
    known.push(webhook, request);
    return { job: begin(waitingJobFrom(endpointId, known).job, claims[turn - 1] as Claim).job, request };
  });
}
