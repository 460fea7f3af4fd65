import { END_STATUSES } from './job-records.ts';
import type { Delivery, DeliveryEntry, Job, JobStatus } from './job-records.ts';
import type { Row, Value } from './sql.ts';

/**
 * A job has a row of its own, which is written when it is made and when it ends. While it waits
 * it has a place in the queue beside it, and while a worker holds it a lease, which says who and
 * since when. Rows travel as arrays: objects with names cost more than the database itself.
 */
const JOB_COLUMNS = [
  'seq',
  'endpoint_id',
  'id',
  'account_id',
  'status',
  'low_priority',
  'position',
  'created_at',
  'queued_at',
  'ttl_at',
  'ttl',
  'execution_timeout',
  'retention',
  'retries_left',
  'retries',
  'webhook',
  'attempt',
  'worker_id',
  'taken_at',
  'ended_at',
  'drained',
  'due_at',
] as const;
const LEASE_READ = ['lease', 'worker_id', 'attempt', 'taken_at', 'due_at'] as const;
const LEASE_AT = JOB_COLUMNS.length;
/** Where each column is in a row that begins with a job: those of its own row, and those of its lease. */
const AT = positions(JOB_COLUMNS, 0);
const LEASED_AT = positions(LEASE_READ, LEASE_AT);
/** Where what is selected behind a job begins. */
export const AFTER_JOB = LEASE_AT + LEASE_READ.length;

/** What to select of `jobs` as `job`, with its lease as `lease` where it has one. */
export const JOB = [
  ...JOB_COLUMNS.map((column) => `job.${column}`),
  ...LEASE_READ.map((column) => `lease.${column}`),
].join(', ');
/** Of a waiting job much is known without asking. What is not: first what holds no space, */
export const WAITING_FACTS = [
  'seq',
  'id',
  'account_id',
  'low_priority',
  'position',
  'created_at',
  'queued_at',
  'ttl_at',
  'ttl',
  'execution_timeout',
  'retention',
  'retries_left',
  'retries',
  'attempt',
  'drained',
] as const;
/** then what may hold anything. */
const WAITING_TEXTS = ['webhook', 'request'] as const;
export const WAITING_JOB = [...WAITING_FACTS, ...WAITING_TEXTS].map((column) => `job.${column}`).join(', ');
const WAITING_AT = positions([...WAITING_FACTS, ...WAITING_TEXTS], 0);

export function waitingFacts(job: Job): Value[] {
  return [
    job.seq,
    job.id,
    job.accountId,
    job.lowPriority ? 1 : 0,
    job.position,
    job.createdAt,
    job.queuedAt,
    job.ttlAt,
    job.ttl,
    job.executionTimeout,
    job.retention,
    job.retriesLeft,
    job.retries,
    job.attempt,
    job.drained,
  ];
}

export function waitingJobFrom(endpointId: string, values: readonly Value[]): { job: Job; request: string } {
  const ttlAt = values[WAITING_AT.ttl_at] as number;
  const job: Job = {
    endpointId,
    seq: values[WAITING_AT.seq] as number,
    id: values[WAITING_AT.id] as string,
    accountId: values[WAITING_AT.account_id] as string,
    status: 'IN_QUEUE',
    lowPriority: values[WAITING_AT.low_priority] === 1,
    position: values[WAITING_AT.position] as number,
    createdAt: values[WAITING_AT.created_at] as number,
    queuedAt: values[WAITING_AT.queued_at] as number,
    ttlAt,
    ttl: values[WAITING_AT.ttl] as number,
    executionTimeout: values[WAITING_AT.execution_timeout] as number,
    retention: values[WAITING_AT.retention] as number,
    retriesLeft: values[WAITING_AT.retries_left] as number,
    retries: values[WAITING_AT.retries] as number,
    webhook: values[WAITING_AT.webhook] as string | null,
    attempt: values[WAITING_AT.attempt] as number,
    lease: null,
    workerId: null,
    takenAt: null,
    endedAt: null,
    drained: values[WAITING_AT.drained] as number,
    dueAt: ttlAt,
  };
  return { job, request: values[WAITING_AT.request] as string };
}

export const PAYLOADS = 'job.request, job.output, job.error';
export const JOBS_AND_LEASES =
  'jobs as job left join job_leases as lease on lease.endpoint_id = job.endpoint_id and lease.seq = job.seq';

/** How large what a job carries is, in bytes; both databases know it without reading it. */
export const PAYLOAD_BYTES =
  'octet_length(job.request) + coalesce(octet_length(job.output), 0) + coalesce(octet_length(job.error), 0)';

/** The rows that a list looks at. Running jobs are few and lie by themselves, and so do those that wait (`waiting`); where many wait, the way through all jobs soon meets them. */
export function listed(
  status: JobStatus | undefined,
  fewWait: boolean,
  waiting: string,
): { rows: string; jobs: string; only: string } {
  const apart =
    status === 'IN_PROGRESS' ? 'job_leases' : status === 'IN_QUEUE' && fewWait ? waiting : undefined;
  // Written like this, SQLite begins with the few and not with all jobs.
  if (apart !== undefined)
    return {
      rows: `${apart} as place`,
      jobs: `${apart} as place cross join jobs as job`,
      only: 'and job.endpoint_id = place.endpoint_id and job.seq = place.seq',
    };
  if (status === 'IN_QUEUE')
    return { rows: 'jobs', jobs: JOBS_AND_LEASES, only: `and job.status = 'IN_QUEUE' and lease.seq is null` };
  return {
    rows: 'jobs',
    jobs: 'jobs as job',
    only: status === undefined ? '' : `and job.status = '${status}'`,
  };
}

/** Of a row in `jobs`. */
export const HAS_ENDED = `status in (${END_STATUSES.map((status) => `'${status}'`).join(', ')})`;

/** A new job, in the order in which both stores write it. */
export const INSERTED_COLUMNS = [
  ...JOB_COLUMNS,
  'look_at',
  'idempotency_key',
  'body_hash',
  'request',
] as const;

export function insertedValues(
  job: Job,
  idempotency: { key: string; bodyHash: string } | undefined,
  request: string,
): Value[] {
  return [
    job.seq,
    job.endpointId,
    job.id,
    job.accountId,
    job.status,
    job.lowPriority ? 1 : 0,
    job.position,
    job.createdAt,
    job.queuedAt,
    job.ttlAt,
    job.ttl,
    job.executionTimeout,
    job.retention,
    job.retriesLeft,
    job.retries,
    job.webhook,
    job.attempt,
    job.workerId,
    job.takenAt,
    job.endedAt,
    job.drained,
    job.dueAt,
    nextLook(job, job.createdAt),
    idempotency?.key ?? null,
    idempotency?.bodyHash ?? null,
    request,
  ];
}

/** What of its own row a change may touch; the rest is fixed when a job is made. */
export const CHANGING_COLUMNS = [
  'status',
  'position',
  'queued_at',
  'ttl_at',
  'ttl',
  'retries_left',
  'retries',
  'attempt',
  'worker_id',
  'taken_at',
  'ended_at',
  'drained',
  'due_at',
] as const;

export function changingValues(job: Job): Value[] {
  const leased = job.status === 'IN_PROGRESS';
  return [
    leased ? 'IN_QUEUE' : job.status,
    job.position,
    job.queuedAt,
    job.ttlAt,
    job.ttl,
    job.retriesLeft,
    job.retries,
    job.attempt,
    job.workerId,
    job.takenAt,
    job.endedAt,
    job.drained,
    leased ? job.ttlAt : job.dueAt,
  ];
}

export const LEASE_COLUMNS = [
  'seq',
  'endpoint_id',
  'worker_id',
  'lease',
  'attempt',
  'taken_at',
  'due_at',
] as const;

export function leaseValues(job: Job): Value[] {
  return [
    job.seq,
    job.endpointId,
    job.workerId ?? '',
    job.lease ?? '',
    job.attempt,
    job.takenAt ?? 0,
    job.dueAt,
  ];
}

export function jobFromValues(values: readonly Value[]): Job {
  const leased = values[LEASED_AT.lease] !== null;
  return {
    endpointId: values[AT.endpoint_id] as string,
    seq: values[AT.seq] as number,
    id: values[AT.id] as string,
    accountId: values[AT.account_id] as string,
    status: leased ? 'IN_PROGRESS' : (values[AT.status] as JobStatus),
    lowPriority: values[AT.low_priority] === 1,
    position: values[AT.position] as number,
    createdAt: values[AT.created_at] as number,
    queuedAt: values[AT.queued_at] as number,
    ttlAt: values[AT.ttl_at] as number,
    ttl: values[AT.ttl] as number,
    executionTimeout: values[AT.execution_timeout] as number,
    retention: values[AT.retention] as number,
    retriesLeft: values[AT.retries_left] as number,
    retries: values[AT.retries] as number,
    webhook: values[AT.webhook] as string | null,
    attempt: values[leased ? LEASED_AT.attempt : AT.attempt] as number,
    lease: values[LEASED_AT.lease] as string | null,
    workerId: values[leased ? LEASED_AT.worker_id : AT.worker_id] as string | null,
    takenAt: values[leased ? LEASED_AT.taken_at : AT.taken_at] as number | null,
    endedAt: values[AT.ended_at] as number | null,
    drained: values[AT.drained] as number,
    dueAt: values[leased ? LEASED_AT.due_at : AT.due_at] as number,
  };
}

/** How much later than due the row of an ended job may be looked at. Nobody sees it meanwhile. */
const LATE_MS = 60_000;

/**
 * When a row has to be looked at next, as of a moment at which the job is not due. Whenever the
 * job ends after that, its retention is over no earlier than `LATE_MS` before the look: an end
 * never has to move it, and with that no index. One that has ended is looked at when it is due.
 */
export function nextLook(job: Job, now: number): number {
  if (job.status !== 'IN_QUEUE' && job.status !== 'IN_PROGRESS') return job.dueAt;
  return Math.min(job.ttlAt, now + job.retention + LATE_MS);
}

export const DELIVERY_COLUMNS = [
  'id',
  'endpoint_id',
  'account_id',
  'job_id',
  'url',
  'body',
  'attempts',
  'next_at',
  'state',
  'last_status',
  'last_error',
  'created_at',
  'updated_at',
] as const;

export function deliveryValues(delivery: Delivery): Value[] {
  return [
    delivery.id,
    delivery.endpointId,
    delivery.accountId,
    delivery.jobId,
    delivery.url,
    delivery.body,
    delivery.attempts,
    delivery.nextAt,
    delivery.state,
    delivery.lastStatus,
    delivery.lastError,
    delivery.createdAt,
    delivery.updatedAt,
  ];
}

/** All but the body, which may be large. */
export const ENTRY_COLUMNS = DELIVERY_COLUMNS.filter((column) => column !== 'body').join(', ');

/** Of deliveries, with what both databases know of their size without reading them, those that fit. */
export function thatFit(rows: readonly Row[], bytes: number): string[] {
  let size = 0;
  return rows
    .filter((row, index) => (size += row['bytes'] as number) <= bytes || index === 0)
    .map((row) => row['id'] as string);
}

export function deliveryFromRow(row: Row): Delivery {
  return { ...entryFromRow(row), body: row['body'] as string };
}

export function entryFromRow(row: Row): DeliveryEntry {
  return {
    id: row['id'] as string,
    endpointId: row['endpoint_id'] as string,
    accountId: row['account_id'] as string,
    jobId: row['job_id'] as string,
    url: row['url'] as string,
    attempts: row['attempts'] as number,
    nextAt: row['next_at'] as number | null,
    state: row['state'] as Delivery['state'],
    lastStatus: row['last_status'] as number | null,
    lastError: row['last_error'] as string | null,
    createdAt: row['created_at'] as number,
    updatedAt: row['updated_at'] as number,
  };
}

function positions<Column extends string>(
  columns: readonly Column[],
  from: number,
): Readonly<Record<Column, number>> {
  return Object.fromEntries(columns.map((column, index) => [column, from + index])) as Record<Column, number>;
}
