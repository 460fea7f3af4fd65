import { TERMINAL_STATUSES } from '../../domain/job-records.ts';
import type { Delivery, DeliveryEntry, Job, JobStatus } from '../../domain/job-records.ts';
import type { Row, Value } from '../sql.ts';

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
const LEASE_SELECT_COLUMNS = ['lease', 'worker_id', 'attempt', 'taken_at', 'due_at'] as const;
const LEASE_OFFSET = JOB_COLUMNS.length;
/** Where each column is in a row that begins with a job: those of its own row, and those of its lease. */
const JOB_INDEX = positions(JOB_COLUMNS, 0);
const LEASE_INDEX = positions(LEASE_SELECT_COLUMNS, LEASE_OFFSET);
/** Where what is selected behind a job begins. */
export const JOB_SELECT_LENGTH = LEASE_OFFSET + LEASE_SELECT_COLUMNS.length;

/** What to select of `jobs` as `job`, with its lease as `lease` where it has one. */
export const JOB_SELECT = [
  ...JOB_COLUMNS.map((column) => `job.${column}`),
  ...LEASE_SELECT_COLUMNS.map((column) => `lease.${column}`),
].join(', ');
/** Of a waiting job much is known without asking. What is not: first what holds no space, */
export const WAITING_JOB_SCALARS = [
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
const WAITING_JOB_TEXTS = ['webhook', 'request'] as const;
export const WAITING_JOB_SELECT = [...WAITING_JOB_SCALARS, ...WAITING_JOB_TEXTS]
  .map((column) => `job.${column}`)
  .join(', ');
const WAITING_JOB_INDEX = positions([...WAITING_JOB_SCALARS, ...WAITING_JOB_TEXTS], 0);

export function waitingJobScalars(job: Job): Value[] {
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

export function waitingJobFromValues(
  endpointId: string,
  values: readonly Value[],
): { job: Job; request: string } {
  const ttlAt = values[WAITING_JOB_INDEX.ttl_at] as number;
  const job: Job = {
    endpointId,
    seq: values[WAITING_JOB_INDEX.seq] as number,
    id: values[WAITING_JOB_INDEX.id] as string,
    accountId: values[WAITING_JOB_INDEX.account_id] as string,
    status: 'IN_QUEUE',
    lowPriority: values[WAITING_JOB_INDEX.low_priority] === 1,
    position: values[WAITING_JOB_INDEX.position] as number,
    createdAt: values[WAITING_JOB_INDEX.created_at] as number,
    queuedAt: values[WAITING_JOB_INDEX.queued_at] as number,
    ttlAt,
    ttl: values[WAITING_JOB_INDEX.ttl] as number,
    executionTimeout: values[WAITING_JOB_INDEX.execution_timeout] as number,
    retention: values[WAITING_JOB_INDEX.retention] as number,
    retriesLeft: values[WAITING_JOB_INDEX.retries_left] as number,
    retries: values[WAITING_JOB_INDEX.retries] as number,
    webhook: values[WAITING_JOB_INDEX.webhook] as string | null,
    attempt: values[WAITING_JOB_INDEX.attempt] as number,
    lease: null,
    workerId: null,
    takenAt: null,
    endedAt: null,
    drained: values[WAITING_JOB_INDEX.drained] as number,
    dueAt: ttlAt,
  };
  return { job, request: values[WAITING_JOB_INDEX.request] as string };
}

export const PAYLOAD_COLUMNS = 'job.request, job.output, job.error';
export const JOBS_WITH_LEASES =
  'jobs as job left join job_leases as lease on lease.endpoint_id = job.endpoint_id and lease.seq = job.seq';

/** How large what a job carries is, in bytes; both databases know it without reading it. */
export const PAYLOAD_BYTES =
  'octet_length(job.request) + coalesce(octet_length(job.output), 0) + coalesce(octet_length(job.error), 0)';

/** The rows that a list looks at. Running jobs are few and lie by themselves, and so do those that wait (`waiting`); where many wait, the way through all jobs soon meets them. */
export function listSource(
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
    return {
      rows: 'jobs',
      jobs: JOBS_WITH_LEASES,
      only: `and job.status = 'IN_QUEUE' and lease.seq is null`,
    };
  return {
    rows: 'jobs',
    jobs: 'jobs as job',
    only: status === undefined ? '' : `and job.status = '${status}'`,
  };
}

/** Of a row in `jobs`. */
export const IS_TERMINAL = `status in (${TERMINAL_STATUSES.map((status) => `'${status}'`).join(', ')})`;

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
    nextCheckAt(job, job.createdAt),
    idempotency?.key ?? null,
    idempotency?.bodyHash ?? null,
    request,
  ];
}

/** What of its own row a change may touch; the rest is fixed when a job is made. */
export const UPDATABLE_COLUMNS = [
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

export function updatableValues(job: Job): Value[] {
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
  const leased = values[LEASE_INDEX.lease] !== null;
  return {
    endpointId: values[JOB_INDEX.endpoint_id] as string,
    seq: values[JOB_INDEX.seq] as number,
    id: values[JOB_INDEX.id] as string,
    accountId: values[JOB_INDEX.account_id] as string,
    status: leased ? 'IN_PROGRESS' : (values[JOB_INDEX.status] as JobStatus),
    lowPriority: values[JOB_INDEX.low_priority] === 1,
    position: values[JOB_INDEX.position] as number,
    createdAt: values[JOB_INDEX.created_at] as number,
    queuedAt: values[JOB_INDEX.queued_at] as number,
    ttlAt: values[JOB_INDEX.ttl_at] as number,
    ttl: values[JOB_INDEX.ttl] as number,
    executionTimeout: values[JOB_INDEX.execution_timeout] as number,
    retention: values[JOB_INDEX.retention] as number,
    retriesLeft: values[JOB_INDEX.retries_left] as number,
    retries: values[JOB_INDEX.retries] as number,
    webhook: values[JOB_INDEX.webhook] as string | null,
    attempt: values[leased ? LEASE_INDEX.attempt : JOB_INDEX.attempt] as number,
    lease: values[LEASE_INDEX.lease] as string | null,
    workerId: values[leased ? LEASE_INDEX.worker_id : JOB_INDEX.worker_id] as string | null,
    takenAt: values[leased ? LEASE_INDEX.taken_at : JOB_INDEX.taken_at] as number | null,
    endedAt: values[JOB_INDEX.ended_at] as number | null,
    drained: values[JOB_INDEX.drained] as number,
    dueAt: values[leased ? LEASE_INDEX.due_at : JOB_INDEX.due_at] as number,
  };
}

/** How much later than due the row of an ended job may be looked at. Nobody sees it meanwhile. */
const MAX_RECHECK_DELAY_MS = 60_000;

/**
 * When a row has to be looked at next, as of a moment at which the job is not due. Whenever the
 * job ends after that, its retention is over no earlier than `LATE_MS` before the look: an end
 * never has to move it, and with that no index. One that has ended is looked at when it is due.
 */
export function nextCheckAt(job: Job, now: number): number {
  if (job.status !== 'IN_QUEUE' && job.status !== 'IN_PROGRESS') return job.dueAt;
  return Math.min(job.ttlAt, now + job.retention + MAX_RECHECK_DELAY_MS);
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
export const DELIVERY_ENTRY_COLUMNS = DELIVERY_COLUMNS.filter((column) => column !== 'body').join(', ');

/** Of deliveries, with what both databases know of their size without reading them, those that fit. */
export function idsWithinBytes(rows: readonly Row[], bytes: number): string[] {
  let size = 0;
  return rows
    .filter((row, index) => (size += row['bytes'] as number) <= bytes || index === 0)
    .map((row) => row['id'] as string);
}

export function deliveryFromRow(row: Row): Delivery {
  return { ...deliveryEntryFromRow(row), body: row['body'] as string };
}

export function deliveryEntryFromRow(row: Row): DeliveryEntry {
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
