import type { Migration } from './migration.ts';

/** When a lease has to be checked, by the rule of a take. */
const DUE_AT = 'least(held.look_at, jobs.ttl_at, held.taken_at + nullif(jobs.execution_timeout, 0))';

/**
 * The same on PostgreSQL as 0018 on SQLite: the row of a job says all of its state, and partial indexes find
 * waiting and running jobs. Before, jobs that came together shared a row of `job_places`, what a take handed
 * out was one row of `job_bundles`, and single leases were rows of `job_leases`; the job's own row said
 * IN_QUEUE until it ended.
 */
export const jobStateInOneRowOnPostgres: Migration = {
  name: 'the state of a job in its row, on PostgreSQL',
  statements: [
    'alter table jobs add column lease text',
    `create table job_requests (endpoint_id text not null, seq bigint not null, request text not null,
      primary key (endpoint_id, seq))`,
    'insert into job_requests (endpoint_id, seq, request) select endpoint_id, seq, request from jobs',
    `update jobs set status = 'IN_PROGRESS', attempt = held.attempt, lease = held.lease, worker_id = held.worker_id,
        taken_at = held.taken_at, due_at = held.due_at
      from job_leases as held where held.endpoint_id = jobs.endpoint_id and held.seq = jobs.seq`,
    // Jobs of a bundle that have ended, or have a lease of their own, are no longer held by it.
    `update jobs set status = 'IN_PROGRESS', attempt = jobs.attempt + 1, lease = held.lease, worker_id = held.worker_id,
        taken_at = held.taken_at, due_at = ${DUE_AT}
      from (select bundle.endpoint_id, bundle.taken_at, bundle.look_at, job.seq, job.worker_id, job.lease
        from job_bundles as bundle, unnest(bundle.seqs, bundle.workers, bundle.leases) as job (seq, worker_id, lease)) as held
      where held.endpoint_id = jobs.endpoint_id and held.seq = jobs.seq and jobs.status = 'IN_QUEUE'`,
    'drop table job_places',
    'drop table job_bundles',
    'drop table job_leases',
    'alter table jobs drop column request, drop column place',
    // There was room on each page for the next version of a row; taking a job now changes indexes all the
    // same.
    'alter table jobs reset (fillfactor)',
    `create index jobs_waiting on jobs (endpoint_id, low_priority, account_id, position, seq) where status = 'IN_QUEUE'`,
    `create index jobs_running on jobs (endpoint_id, seq) where status = 'IN_PROGRESS'`,
    // A take writes a new entry into each index that the row is then in: running jobs are in no more than
    // this one and their key.
    'drop index jobs_to_look_at',
    `create index jobs_to_look_at on jobs (look_at) where status <> 'IN_PROGRESS'`,
  ].map((statement) => ({ sqlite: 'select 1', postgres: statement })),
};
