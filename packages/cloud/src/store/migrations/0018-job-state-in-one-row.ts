import type { Migration } from './migration.ts';

/** The columns that `jobs` had before and keeps. */
const KEPT = `endpoint_id, id, account_id, low_priority, position, created_at, queued_at, ttl_at, ttl,
  execution_timeout, retention, retries_left, retries, webhook, ended_at, drained, look_at, idempotency_key, body_hash,
  output, error`;

/**
 * A field of a job that `job_notes` holds as JSON: as it was when it was taken, with what its end changed.
 */
const noted = (field: string): string => `json_extract(state, '$.${field}')`;

/** When its row has to be looked at, by the rule of `nextCheckAt`. */
const NOTED_LOOK_AT = `case when ${noted('status')} = 'IN_PROGRESS'
  then min(${noted('ttlAt')}, ${noted('createdAt')} + ${noted('retention')} + 60000) else ${noted('dueAt')} end`;

/**
 * On SQLite the row of a job now says all of its state. Before, a running job's row said IN_QUEUE and a row of
 * `job_leases` said who had it; waiting jobs were in rows of `job_waiting` that up to fifty of them shared; and
 * jobs that went straight to a worker were JSON in `job_notes`. All of that becomes columns and indexes of `jobs`.
 *
 * Requests get a table of their own, since a row is written again when a job is taken and when its lease
 * is renewed, and a request may have megabytes.
 */
export const jobStateInOneRow: Migration = {
  name: 'the state of a job in its row, on SQLite',
  statements: [
    'alter table jobs rename to jobs_before',
    'drop index jobs_by_endpoint',
    'drop index jobs_to_look_at',
    'drop index jobs_idempotency',
    `create table jobs (
      seq integer primary key,
      endpoint_id text not null,
      id text not null,
      account_id text not null,
      status text not null,
      low_priority integer not null,
      position bigint not null,
      created_at bigint not null,
      queued_at bigint not null,
      ttl_at bigint not null,
      ttl bigint not null,
      execution_timeout bigint not null,
      retention bigint not null,
      retries_left integer not null,
      retries integer not null,
      webhook text,
      attempt integer not null,
      lease text,
      worker_id text,
      taken_at bigint,
      ended_at bigint,
      drained integer not null,
      due_at bigint not null,
      look_at bigint not null,
      idempotency_key text,
      body_hash text,
      output text,
      error text
    )`,
    'create table job_requests (seq integer primary key, endpoint_id text not null, request text not null)',
    `insert into jobs (seq, status, attempt, lease, worker_id, taken_at, due_at, ${KEPT})
      select job.seq, iif(lease.seq is null, job.status, 'IN_PROGRESS'), coalesce(lease.attempt, job.attempt), lease.lease,
        coalesce(lease.worker_id, job.worker_id), coalesce(lease.taken_at, job.taken_at), coalesce(lease.due_at, job.due_at),
        ${KEPT.replaceAll(/\w+/g, (column) => `job.${column}`)}
      from jobs_before as job left join job_leases as lease on lease.seq = job.seq`,
    'insert into job_requests (seq, endpoint_id, request) select seq, endpoint_id, request from jobs_before',
    'drop table jobs_before',
    'drop table job_leases',
    'drop table job_waiting',
    // A null in the patch removes a field, and a field that is not there reads as null.
    `create table job_notes_as_state as
      select seq, request, json_patch(held, coalesce(json_extract(ended, '$[0]'), '{}')) as state,
        json_extract(ended, '$[1]') as output, json_extract(ended, '$[2]') as error from job_notes`,
    `insert into jobs (seq, status, attempt, lease, worker_id, taken_at, due_at, ${KEPT})
      select seq, ${noted('status')}, ${noted('attempt')}, ${noted('lease')}, ${noted('workerId')}, ${noted('takenAt')}, ${noted('dueAt')},
        ${noted('endpointId')}, ${noted('id')}, ${noted('accountId')}, ${noted('lowPriority')}, ${noted('position')}, ${noted('createdAt')},
        ${noted('queuedAt')}, ${noted('ttlAt')}, ${noted('ttl')}, ${noted('executionTimeout')}, ${noted('retention')}, ${noted('retriesLeft')},
        ${noted('retries')}, ${noted('webhook')}, ${noted('endedAt')}, ${noted('drained')}, ${NOTED_LOOK_AT}, null, null, output, error
      from job_notes_as_state`,
    `insert into job_requests (seq, endpoint_id, request) select seq, ${noted('endpointId')}, request from job_notes_as_state`,
    // Jobs in notes were not counted yet.
    `insert into job_counts (endpoint_id, lane, queued, running, completed, failed, retried)
      select ${noted('endpointId')}, 'sqlite', 0, sum(${noted('status')} = 'IN_PROGRESS'), sum(${noted('status')} = 'COMPLETED'),
        sum(${noted('status')} in ('FAILED', 'TIMED_OUT')), 0 from job_notes_as_state where true group by 1
      on conflict (endpoint_id, lane) do update set running = running + excluded.running,
        completed = completed + excluded.completed, failed = failed + excluded.failed`,
    'drop table job_notes_as_state',
    'drop table job_notes',
    'create index jobs_by_endpoint on jobs (endpoint_id)',
    'create index jobs_to_look_at on jobs (look_at)',
    'create unique index jobs_idempotency on jobs (endpoint_id, idempotency_key) where idempotency_key is not null',
    `create index jobs_waiting on jobs (endpoint_id, low_priority, account_id, position) where status = 'IN_QUEUE'`,
    `create index jobs_running on jobs (endpoint_id) where status = 'IN_PROGRESS'`,
    `create index jobs_leases on jobs (due_at) where status = 'IN_PROGRESS'`,
  ].map((statement) => ({ sqlite: statement, postgres: 'select 1' })),
};
