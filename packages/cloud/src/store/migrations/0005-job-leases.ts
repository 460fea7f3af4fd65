import type { Migration } from './migration.ts';

/**
 * Who waits and who is being worked on get tables of their own, so that handing out a job
 * leaves its row, which holds the payloads, alone: a place in the queue goes, a lease comes.
 * The row is written when the job is made and when it ends.
 *
 * `look_at` replaces the index on `due_at`. It says when somebody has to look at the row at
 * the latest, and it moves far less often than the moment at which the job is due.
 */
export const jobLeases: Migration = {
  name: 'job leases',
  statements: [
    'drop index jobs_waiting',
    'drop index jobs_running',
    'drop index jobs_due',
    'drop index jobs_idempotency',
    'alter table jobs rename to jobs_before',
    {
      // A number names a job among all of a SQLite file, where one server counts; on PostgreSQL two servers
      // may count to the same.
      sqlite: `create table jobs (seq integer primary key, ${jobColumns()})`,
      postgres: `create table jobs (seq bigint not null, ${jobColumns()}, constraint jobs_by_endpoint primary key (endpoint_id, seq))`,
    },
    {
      sqlite: 'create index jobs_by_endpoint on jobs (endpoint_id)',
      // A new version of a row fits beside the old one, and then no index has to learn of it.
      postgres: 'alter table jobs set (fillfactor = 45)',
    },
    `insert into jobs select seq, endpoint_id, id, account_id, case when status = 'IN_PROGRESS' then 'IN_QUEUE' else status end, low_priority, position, created_at, queued_at, ttl_at, ttl,
      execution_timeout, retention, retries_left, retries, webhook, attempt, worker_id, taken_at, ended_at, drained, case when status = 'IN_PROGRESS' then ttl_at else due_at end, 0,
      idempotency_key, body_hash, request, output, error from jobs_before`,
    'create index jobs_to_look_at on jobs (look_at)',
    'create unique index jobs_idempotency on jobs (endpoint_id, idempotency_key) where idempotency_key is not null',
    {
      sqlite: `create table job_waiting (${waitingColumns()}) without rowid`,
      postgres: `create table job_waiting (${waitingColumns()})`,
    },
    {
      sqlite: `create table job_leases (seq integer primary key, ${leaseColumns()})`,
      postgres: `create table job_leases (seq bigint not null, ${leaseColumns()}, primary key (endpoint_id, seq))`,
    },
    `insert into job_waiting select endpoint_id, low_priority, account_id, position, seq, queued_at from jobs_before where status = 'IN_QUEUE'`,
    `insert into job_leases select seq, endpoint_id, coalesce(worker_id, ''), coalesce(lease, ''), attempt, coalesce(taken_at, queued_at), due_at from jobs_before where status = 'IN_PROGRESS'`,
    'drop table jobs_before',
  ],
};

function jobColumns(): string {
  return `endpoint_id text not null,
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
    worker_id text,
    taken_at bigint,
    ended_at bigint,
    drained integer not null,
    due_at bigint not null,
    look_at bigint not null,
    idempotency_key text,
    body_hash text,
    request text not null,
    output text,
    error text`;
}

function waitingColumns(): string {
  return `endpoint_id text not null,
    low_priority integer not null,
    account_id text not null,
    position bigint not null,
    seq bigint not null,
    queued_at bigint not null,
    primary key (endpoint_id, low_priority, account_id, position, seq)`;
}

function leaseColumns(): string {
  return `endpoint_id text not null,
    worker_id text not null,
    lease text not null,
    attempt integer not null,
    taken_at bigint not null,
    due_at bigint not null`;
}
