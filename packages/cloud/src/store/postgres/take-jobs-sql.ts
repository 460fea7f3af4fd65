import { LEASE_COLUMNS } from '../tables/job-rows.ts';
import { leaseDueAtSql } from './lease-batches.ts';
import { addCountsSql } from './job-counts.ts';
import { JOB_SEPARATOR_SQL, positionSql } from './queue-batches.ts';

/** Parameters of every take: 1 endpoint, 2 how many, 3 workers and 4 leases of the claims, 5 the time, 6 when to look at the leases, 7 the lane of the counts. */
const INSERT_LEASES = `insert into job_leases (${LEASE_COLUMNS.join(', ')})
    select picked.seq, $1, ($3::text[])[picked.turn], ($4::text[])[picked.turn], job.attempt + 1, $5::bigint, ${leaseDueAtSql('$6::bigint', '$5::bigint')}
    from picked, lateral (select attempt, ttl_at, execution_timeout from jobs where jobs.endpoint_id = $1 and jobs.seq = picked.seq limit 1) as job`;
/** `seqs`: the numbers of the jobs, in the order of their claims; `from`: where the limits of their places are. */
const insertLeaseBatchSql = (
  seqs: string,
  count: string,
  from: string,
): string => `insert into job_bundles (endpoint_id, id, taken_at, look_at, due_at, seqs, workers, leases)
    select $1, ($4::text[])[1], $5::bigint, $6::bigint, least($6::bigint, min(ttl_at), $5::bigint + min(nullif(execution_timeout, 0))), ${seqs}, ($3::text[])[:${count}::int], ($4::text[])[:${count}::int]
    from ${from} having count(*) > 0`;

/** The places that jobs are given from go, or hold fewer. */
const SHRINK_BATCHES = `emptied as (delete from job_places where ctid = any (array(select at from given where gone + count = size)) returning 1),
  begun as (update job_places set gone = job_places.gone + given.count from given where job_places.ctid = given.at and given.gone + given.count < given.size returning 1)`;
const CHECK_UNCHANGED =
  'kept as materialized (select 1 / (case when (select count(*) from given) = (select count(*) from emptied) + (select count(*) from begun) then 1 else 0 end) as whole)';
/** What they say of the jobs that go. */
const TAKEN_JOBS = `case when given.count = given.size then place.jobs else array_to_string((string_to_array(place.jobs, ${JOB_SEPARATOR_SQL}))[given.gone + 1:given.gone + given.count], ${JOB_SEPARATOR_SQL}) end
  from kept, given, lateral (select jobs from job_places where ctid = given.at) as place`;

/**
 * Hands out jobs, whatever waits: one statement, which is its own transaction.
 *
 * Jobs go in this order: normal before low priority, within that the accounts in turn, within an
 * account by position. The recursion steps from one queue (priority and account) to the next over
 * the index, so queues are found without counting jobs. Of each queue as many places are looked at
 * as hold what is wanted; one whose jobs are not all before the next place does not count. Places that somebody else has in hands are passed over:
 * another take, which may not want all that it has locked, or a change. Where that leaves claims without a
 * job, a last row without any tells it.
 *
 * Parameter 8 is the account that was served last, 9 how many jobs are looked at of each queue.
 *
 * All of it sees one moment. A place that was locked may be newer than that; then it is not
 * found again by its `ctid`, the statement divides by zero, and nothing of it is kept.
 */
const takeFairSql = (leases: string): string => `with recursive queues as (
    (select low_priority, account_id from job_places where endpoint_id = $1 order by low_priority, account_id limit 1)
    union all
    select following.low_priority, following.account_id from queues,
      lateral (select low_priority, account_id from job_places where endpoint_id = $1 and (low_priority, account_id) > (queues.low_priority, queues.account_id)
        order by low_priority, account_id limit 1) as following
  ), seen as (
    select head.at from queues, lateral (
      select at, coalesce(sum(counts) over (order by position, seq, at rows between unbounded preceding and 1 preceding), 0) as before from (
        select at, position, seq, case when lead(position) over (order by position, seq, at) < last then 0 else size end as counts from (
          select ctid as at, position, seq, cardinality(seqs) - gone as size, ${positionSql('seqs[cardinality(seqs)]')} as last from job_places
          where endpoint_id = $1 and low_priority = queues.low_priority and account_id = queues.account_id order by position, seq limit $9 + 1) as place) as following) as head
    where head.before < $9
  ), heads as materialized (
    select ctid as at, low_priority, account_id, position, seq, seqs, gone, ttl_at, execution_timeout from job_places where ctid = any (array(select at from seen)) for update skip locked
  ), offered as (
    select at, low_priority, account_id, gone, cardinality(seqs) as size, ttl_at, execution_timeout, job.seq, job.nth,
      row_number() over (partition by low_priority, account_id order by ${positionSql('job.seq', 'heads.')}, job.seq) as place
    from heads, unnest(seqs[gone + 1:gone + $2]) with ordinality as job (seq, nth)
  ), picked as materialized (
    select at, seq, nth, gone, size, ttl_at, execution_timeout, (row_number() over (order by low_priority, place, account_id <= $8, account_id))::int as turn
    from offered order by low_priority, place, account_id <= $8, account_id limit $2
  ), given as materialized (select at, gone, size, count(*)::int as count, string_agg(turn::text, ' ' order by nth) as turns from picked group by at, gone, size),
  ${SHRINK_BATCHES},
  leased as (${leases}),
  counted as (${addCountsSql('select $1, $7, -count(*), count(*), 0, 0, 0 from picked having count(*) > 0')}),
  ${CHECK_UNCHANGED}
  select turns, ${TAKEN_JOBS} where kept.whole = 1
  union all select null, null from kept where kept.whole = 1 and (select count(*) from picked) < $2
    and exists (select 1 from job_places where endpoint_id = $1 and ctid <> all (array(select at from given)))`;

export const TAKE_FEW = { name: 'take few', text: takeFairSql(INSERT_LEASES) };
export const TAKE_MANY = {
  name: 'take many',
  text: takeFairSql(insertLeaseBatchSql('array_agg(seq order by turn)', 'count(*)', 'picked')),
};

/**
 * The short way, for many jobs of an endpoint where one queue waits, nobody else takes, and
 * places follow each other: then places are counted, and not jobs. Up to so many places as `$8` says are looked at. Where anything is
 * not like that, or they hold less than is wanted though there are more, it takes nothing.
 */
export const TAKE_FROM_ONE_QUEUE = {
  name: 'take straight',
  text: `with head as materialized (select low_priority, account_id from job_places where endpoint_id = $1 order by low_priority, account_id limit 1),
  looked as materialized (
    select place.* from head, lateral (select ctid as at, position, seq, ${positionSql('seqs[cardinality(seqs)]')} as last from job_places
      where endpoint_id = $1 and low_priority = head.low_priority and account_id = head.account_id order by position, seq limit $8 + 1) as place
  ), heads as materialized (
    select ctid as at, position, seq, seqs, gone, cardinality(seqs) as size, ttl_at, execution_timeout from job_places
    where ctid = any (array(select at from looked order by position, seq, at limit $8)) for update skip locked
  ), straight as materialized (
    select (select count(*) from looked) as looked, not exists (select 1 from head, job_places where endpoint_id = $1 and (job_places.low_priority, job_places.account_id) > (head.low_priority, head.account_id))
      and not exists (select 1 from (select lead(position) over (order by position, seq, at) < last as is_amid from looked) as pairs where is_amid) as is_one_line
  ), given as materialized (
    select at, position, seq, seqs, gone, size, least(size - gone, $2 - before)::int as count, ttl_at, execution_timeout
    from straight, (select heads.*, coalesce(sum(size - gone) over (order by position, seq, at rows between unbounded preceding and 1 preceding), 0) as before from heads) as heads
    where before < $2 and is_one_line and (select count(*) from heads) = least(looked, $8) and (looked <= $8 or (select sum(size - gone) from heads) >= $2)
  ), ${SHRINK_BATCHES},
  leased as (${insertLeaseBatchSql('array(select job.seq from given, unnest(seqs[gone + 1:gone + count]) with ordinality as job (seq, nth) order by position, given.seq, at, nth)', 'sum(count)', 'given')}),
  counted as (${addCountsSql('select $1, $7, -sum(count), sum(count), 0, 0, 0 from given having count(*) > 0')}),
  ${CHECK_UNCHANGED}
  select null, ${TAKEN_JOBS} where kept.whole = 1 order by given.position, given.seq, given.at`,
};

/** Requests that no place carries. */
export const SELECT_REQUESTS = {
  name: 'requests',
  text: 'select wanted.seq, job.request from unnest($2::bigint[]) as wanted (seq), lateral (select request from jobs where jobs.endpoint_id = $1 and jobs.seq = wanted.seq limit 1) as job',
};
