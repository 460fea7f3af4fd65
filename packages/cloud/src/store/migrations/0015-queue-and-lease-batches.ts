import type { Migration } from './migration.ts';

/**
 * On PostgreSQL every row that comes and goes costs far more than what it holds. So jobs that
 * came together share a place in the queue, which carries all that a take wants to know of
 * them, and what a take hands out is one bundle of leases. `place` tells in whose place a job
 * waits, where it is not its own.
 */
export const queueAndLeaseBatches: Migration = {
  name: 'jobs that wait and are held together',
  statements: [
    onPostgres('alter table jobs add column place bigint'),
    onPostgres(`create table job_places (
      endpoint_id text not null,
      low_priority integer not null,
      account_id text not null,
      position bigint not null,
      seq bigint not null,
      queued_at bigint not null,
      ttl_at bigint not null,
      execution_timeout bigint not null,
      seqs bigint[] not null,
      gone integer not null,
      jobs text not null
    )`),
    // Not unique: the first of a place may come back to one of its own while others still wait in the one
    // that they shared.
    onPostgres(
      'create index job_places_in_order on job_places (endpoint_id, low_priority, account_id, position, seq)',
    ),
    // To make it smaller would take longer than to write it.
    onPostgres('alter table job_places alter column jobs set storage external'),
    onPostgres(`insert into job_places
      select place.endpoint_id, place.low_priority, place.account_id, place.position, place.seq, place.queued_at, job.ttl_at, job.execution_timeout, array[place.seq], 0,
        concat_ws(' ', job.seq, job.id, job.account_id, job.low_priority, job.position, job.created_at, job.queued_at, job.ttl_at, job.ttl, job.execution_timeout, job.retention,
          job.retries_left, job.retries, job.attempt, job.drained) || chr(31) || coalesce(to_json(job.webhook)::text, 'null') || chr(31)
      from job_waiting as place join jobs as job on job.endpoint_id = place.endpoint_id and job.seq = place.seq`),
    onPostgres('drop table job_waiting'),
    onPostgres(`create table job_bundles (
      endpoint_id text not null,
      id text not null,
      taken_at bigint not null,
      look_at bigint not null,
      due_at bigint not null,
      seqs bigint[] not null,
      workers text[] not null,
      leases text[] not null,
      primary key (endpoint_id, id)
    )`),
    onPostgres(
      'alter table job_bundles alter column seqs set storage external, alter column workers set storage external, alter column leases set storage external',
    ),
  ],
};

function onPostgres(statement: string): Record<'sqlite' | 'postgres', string> {
  return { sqlite: 'select 1', postgres: statement };
}
