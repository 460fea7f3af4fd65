import type { Delivery, Job, JobStatus } from './job-records.ts';
import type { Row, Value } from './sql.ts';

/** The columns of a job without its payloads, in the order in which both stores write them. */
export const JOB_COLUMNS = [
  'endpoint_id', 'seq', 'id', 'account_id', 'status', 'low_priority', 'position', 'created_at', 'queued_at', 'ttl_at', 'ttl', 'execution_timeout',
  'retention', 'retries_left', 'retries', 'webhook', 'attempt', 'lease', 'worker_id', 'taken_at', 'ended_at', 'drained', 'due_at',
] as const;

/** Those that a change may touch; the rest is fixed when a job is made. */
export const CHANGING_COLUMNS = [
  'status', 'position', 'queued_at', 'ttl_at', 'ttl', 'retries_left', 'retries', 'attempt', 'lease', 'worker_id', 'taken_at', 'ended_at', 'drained', 'due_at',
] as const;

export function jobValues(job: Job): Value[] {
  return [
    job.endpointId, job.seq, job.id, job.accountId, job.status, job.lowPriority ? 1 : 0, job.position, job.createdAt, job.queuedAt, job.ttlAt, job.ttl, job.executionTimeout,
    job.retention, job.retriesLeft, job.retries, job.webhook, job.attempt, job.lease, job.workerId, job.takenAt, job.endedAt, job.drained, job.dueAt,
  ];
}

export function changingValues(job: Job): Value[] {
  return [
    job.status, job.position, job.queuedAt, job.ttlAt, job.ttl, job.retriesLeft, job.retries, job.attempt, job.lease, job.workerId, job.takenAt, job.endedAt, job.drained, job.dueAt,
  ];
}

export function jobFromRow(row: Row): Job {
  return {
    endpointId: row['endpoint_id'] as string,
    seq: row['seq'] as number,
    id: row['id'] as string,
    accountId: row['account_id'] as string,
    status: row['status'] as JobStatus,
    lowPriority: row['low_priority'] === 1,
    position: row['position'] as number,
    createdAt: row['created_at'] as number,
    queuedAt: row['queued_at'] as number,
    ttlAt: row['ttl_at'] as number,
    ttl: row['ttl'] as number,
    executionTimeout: row['execution_timeout'] as number,
    retention: row['retention'] as number,
    retriesLeft: row['retries_left'] as number,
    retries: row['retries'] as number,
    webhook: row['webhook'] as string | null,
    attempt: row['attempt'] as number,
    lease: row['lease'] as string | null,
    workerId: row['worker_id'] as string | null,
    takenAt: row['taken_at'] as number | null,
    endedAt: row['ended_at'] as number | null,
    drained: row['drained'] as number,
    dueAt: row['due_at'] as number,
  };
}

export const DELIVERY_COLUMNS = [
  'id', 'endpoint_id', 'account_id', 'job_id', 'url', 'body', 'attempts', 'next_at', 'state', 'last_status', 'last_error', 'created_at', 'updated_at',
] as const;

export function deliveryValues(delivery: Delivery): Value[] {
  return [
    delivery.id, delivery.endpointId, delivery.accountId, delivery.jobId, delivery.url, delivery.body, delivery.attempts, delivery.nextAt, delivery.state,
    delivery.lastStatus, delivery.lastError, delivery.createdAt, delivery.updatedAt,
  ];
}

export function deliveryFromRow(row: Row): Delivery {
  return {
    id: row['id'] as string,
    endpointId: row['endpoint_id'] as string,
    accountId: row['account_id'] as string,
    jobId: row['job_id'] as string,
    url: row['url'] as string,
    body: row['body'] as string,
    attempts: row['attempts'] as number,
    nextAt: row['next_at'] as number | null,
    state: row['state'] as Delivery['state'],
    lastStatus: row['last_status'] as number | null,
    lastError: row['last_error'] as string | null,
    createdAt: row['created_at'] as number,
    updatedAt: row['updated_at'] as number,
  };
}
