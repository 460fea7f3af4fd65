import type { Migration } from './migration.ts';

/**
 * A job is found by its endpoint and number; the waiting ones also by their place in the
 * queue, and all by when they are due. Those are the only indexes: each costs every job.
 */
export const jobs: Migration = {
  name: 'jobs',
  statements: [
    `create table jobs (
      endpoint_id text not null,
      seq bigint not null,
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
      idempotency_key text,
      body_hash text,
      request text not null,
      output text,
      error text,
      primary key (endpoint_id, seq)
    )`,
    `create index jobs_waiting on jobs (endpoint_id, low_priority, account_id, position) where status = 'IN_QUEUE'`,
    `create index jobs_running on jobs (endpoint_id, seq) where status = 'IN_PROGRESS'`,
    `create index jobs_due on jobs (due_at)`,
    `create unique index jobs_idempotency on jobs (endpoint_id, idempotency_key) where idempotency_key is not null`,
    `create table job_chunks (
      endpoint_id text not null,
      seq bigint not null,
      number integer not null,
      chunk text not null,
      primary key (endpoint_id, seq, number)
    )`,
    // One row for each lane of each server, so that two never wait for the same row. The sum counts.
    `create table job_counts (
      endpoint_id text not null,
      lane text not null,
      queued bigint not null,
      running bigint not null,
      completed bigint not null,
      failed bigint not null,
      retried bigint not null,
      primary key (endpoint_id, lane)
    )`,
    `create table job_workers (
      endpoint_id text not null,
      worker_id text not null,
      seen_at bigint not null,
      busy integer not null,
      unhealthy text,
      primary key (endpoint_id, worker_id)
    )`,
    `create table webhook_deliveries (
      id text primary key,
      endpoint_id text not null,
      account_id text not null,
      job_id text not null,
      url text not null,
      body text not null,
      attempts integer not null,
      next_at bigint,
      state text not null,
      last_status integer,
      last_error text,
      created_at bigint not null,
      updated_at bigint not null
    )`,
    `create index webhook_deliveries_due on webhook_deliveries (next_at) where next_at is not null`,
    `create index webhook_deliveries_by_endpoint on webhook_deliveries (endpoint_id, created_at)`,
  ],
};
