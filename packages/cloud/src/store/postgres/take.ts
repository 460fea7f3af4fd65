import type { Pool } from 'pg';
import type { Job } from '../job-records.ts';
import { LEASE_COLUMNS } from '../job-rows.ts';
import type { Claim, TakenJob, TakeTerms } from '../jobs.ts';
import { columnsOf } from './arrays.ts';
import { leaseDue } from './bundles.ts';
import { ADD_COUNTS } from './counts.ts';
import { isDivisionByZero, retried, translated, TryAgain } from './database.ts';
import { positionOf, readPlace } from './places.ts';

/** From this many on, the leases of a take are a bundle. Fewer are jobs that somebody may want to know of one by one. */
const FEWEST_IN_BUNDLE = 8;
/** Where others hold what comes first, a take looks this many times as far. */
const FURTHER = 4;

const LEASES = `insert into job_leases (${LEASE_COLUMNS.join(', ')})
    select picked.seq, $1, ($3::text[])[picked.turn], ($4::text[])[picked.turn], job.attempt + 1, $5::bigint, ${leaseDue('$6::bigint', '$5::bigint')}
    from picked, lateral (select attempt, ttl_at, execution_timeout from jobs where jobs.endpoint_id = $1 and jobs.seq = picked.seq limit 1) as job`;
const BUNDLE = `insert into job_bundles (endpoint_id, id, taken_at, look_at, due_at, seqs, workers, leases)
    select $1, ($4::text[])[1], $5::bigint, $6::bigint, least($6::bigint, min(ttl_at), $5::bigint + min(nullif(execution_timeout, 0))), array_agg(seq order by turn), ($3::text[])[:count(*)::int], ($4::text[])[:count(*)::int]
    from picked having count(*) > 0`;

/**
 * Hands out jobs: one statement, which is its own transaction.
 *
 * Jobs go in this order: normal before low priority, within that the accounts in turn, within an
 * account by position. The recursion steps from one queue (priority and account) to the next over
 * the index, so queues are found without counting jobs. Of each queue as many places are looked at
 * as hold what is wanted; one whose jobs are not all before the next place does not count. Places that somebody else has in hands are passed over:
 * another take, which may not want all that it has locked, or a change. Where that leaves claims without a
 * job, a last row without any tells it.
 *
 * All of it sees one moment. A place that was locked may be newer than that; then it is not
 * found again by its `ctid`, the statement divides by zero, and nothing of it is kept.
 */
const take = (leases: string): string => `with recursive queues as (
    (select low_priority, account_id from job_places where endpoint_id = $1 order by low_priority, account_id limit 1)
    union all
    select following.low_priority, following.account_id from queues,
      lateral (select low_priority, account_id from job_places where endpoint_id = $1 and (low_priority, account_id) > (queues.low_priority, queues.account_id)
        order by low_priority, account_id limit 1) as following
  ), seen as (
    select head.at from queues, lateral (
      select at, coalesce(sum(counts) over (order by position, seq, at rows between unbounded preceding and 1 preceding), 0) as before from (
        select at, position, seq, case when lead(position) over (order by position, seq, at) < last then 0 else size end as counts from (
          select ctid as at, position, seq, cardinality(seqs) - gone as size, ${positionOf('seqs[cardinality(seqs)]')} as last from job_places
          where endpoint_id = $1 and low_priority = queues.low_priority and account_id = queues.account_id order by position, seq limit $9 + 1) as place) as following) as head
    where head.before < $9
  ), heads as materialized (
    select ctid as at, low_priority, account_id, position, seq, seqs, gone, ttl_at, execution_timeout from job_places where ctid = any (array(select at from seen)) for update skip locked
  ), offered as (
    select at, low_priority, account_id, gone, cardinality(seqs) as size, ttl_at, execution_timeout, job.seq, job.nth,
      row_number() over (partition by low_priority, account_id order by ${positionOf('job.seq', 'heads.')}, job.seq) as place
    from heads, unnest(seqs[gone + 1:gone + $2]) with ordinality as job (seq, nth)
  ), picked as materialized (
    select at, seq, nth, gone, size, ttl_at, execution_timeout, (row_number() over (order by low_priority, place, account_id <= $8, account_id))::int as turn
    from offered order by low_priority, place, account_id <= $8, account_id limit $2
  ), given as materialized (select at, gone, size, count(*)::int as count, string_agg(turn::text, ' ' order by nth) as turns from picked group by at, gone, size),
  emptied as (delete from job_places where ctid = any (array(select at from given where gone + count = size)) returning 1),
  begun as (update job_places set gone = job_places.gone + given.count from given where job_places.ctid = given.at and given.gone + given.count < given.size returning 1),
  leased as (${leases}),
  counted as (${ADD_COUNTS('select $1, $7, -count(*), count(*), 0, 0, 0 from picked having count(*) > 0')}),
  kept as materialized (select 1 / (case when (select count(*) from given) = (select count(*) from emptied) + (select count(*) from begun) then 1 else 0 end) as whole)
  select turns, case when given.count = given.size then place.jobs else array_to_string((string_to_array(place.jobs, chr(30)))[given.gone + 1:given.gone + given.count], chr(30)) end
  from kept, given, lateral (select jobs from job_places where ctid = given.at) as place where kept.whole = 1
  union all select null, null from kept where kept.whole = 1 and (select count(*) from picked) < $2
    and exists (select 1 from job_places where endpoint_id = $1 and ctid <> all (array(select at from given)))`;

const TAKE_FEW = { name: 'take few', text: take(LEASES) };
const TAKE_MANY = { name: 'take many', text: take(BUNDLE) };

export interface Handed {
  taken: TakenJob[];
  /** The bundle in which their leases are. */
  bundle: string | undefined;
  /** Others wait that are in somebody's hands. */
  passedOver: boolean;
}

/** `last`: the account that was served last; the next one goes first. */
export async function takeJobs(lanes: Pool, server: string, endpointId: string, { takenAt, lookAt, begin }: TakeTerms, claims: readonly Claim[], last: string): Promise<Handed> {
  const statement = claims.length < FEWEST_IN_BUNDLE ? TAKE_FEW : TAKE_MANY;
  const attempt = async (reach: number): Promise<(readonly [string | null, string | null])[]> => {
    const values = [endpointId, claims.length, ...columnsOf(claims.map(({ workerId, lease }) => [workerId, lease]), 2), takenAt, lookAt, `${server} take`, last, reach];
    try {
      return (await translated(lanes.query<[string | null, string | null]>({ ...statement, values, rowMode: 'array' }))).rows;
    } catch (error) {
      throw isDivisionByZero(error) ? new TryAgain('a place changed while it was taken') : error;
    }
  };
  const tell = (rows: readonly (readonly [string | null, string | null])[]): { jobs: { job: Job; request: string }[]; passedOver: boolean } => {
    const jobs: { job: Job; request: string }[] = [];
    for (const [turns, text] of rows) {
      if (turns === null || text === null) continue;
      const order = turns.split(' ');
      for (const [index, waiting] of readPlace(endpointId, text).entries()) jobs[Number(order[index]) - 1] = waiting;
    }
    return { jobs, passedOver: rows.at(-1)?.[0] === null };
  };
  if (claims.length === 0) return { taken: [], bundle: undefined, passedOver: false };
  let { jobs, passedOver } = tell(await retried(() => attempt(claims.length)));
  if (jobs.length === 0 && passedOver) ({ jobs, passedOver } = tell(await retried(() => attempt(FURTHER * claims.length))));
  const waiting = await withRequests(lanes, endpointId, jobs);
  const taken = waiting.map(({ job, request, turn }) => ({ job: begin(job, claims[turn] as Claim).job, request }));
  return { taken, bundle: statement === TAKE_MANY && jobs.length > 0 ? claims[0]?.lease : undefined, passedOver };
}

/** Reads the requests that were not carried along. A job that is gone by now is left out. */
async function withRequests(lanes: Pool, endpointId: string, jobs: readonly { job: Job; request: string }[]): Promise<{ job: Job; request: string; turn: number }[]> {
  const missing = jobs.filter(({ request }) => request === '').map(({ job }) => job.seq);
  const { rows } = missing.length === 0 ? { rows: [] } : await translated(lanes.query<[number, string]>({
    name: 'requests',
    text: 'select wanted.seq, job.request from unnest($2::bigint[]) as wanted (seq), lateral (select request from jobs where jobs.endpoint_id = $1 and jobs.seq = wanted.seq limit 1) as job',
    values: [endpointId, missing],
    rowMode: 'array',
  }));
  const read = new Map(rows);
  return jobs.map(({ job, request }, turn) => ({ job, request: request === '' ? (read.get(job.seq) ?? '') : request, turn })).filter(({ request }) => request !== '');
}
