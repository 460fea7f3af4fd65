import { TERMINAL_STATUSES } from '../../domain/job-records.ts';
import type { Idempotency, Job, JobOutline, JobStatus, JobWithPayloads } from '../../domain/job-records.ts';
import type { Value } from '../sql.ts';

/**
 * A job is one row of `jobs`, which always says what is true: its status, and while a worker holds it, who
 * does, since when and under which lease. The request is a row of `job_requests`: it never changes and may be
 * large, and every lease renewal would write it again if it were in the same row. The result is written once,
 * by the end of the job, and is in its row.
 *
 * Rows of jobs travel as arrays: to read rows as objects took longer than the statements themselves.
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
  'lease',
  'worker_id',
  'taken_at',
  'ended_at',
  'drained',
  'due_at',
] as const;
type JobColumn = (typeof JOB_COLUMNS)[number];

const INDEX = Object.fromEntries(JOB_COLUMNS.map((column, index) => [column, index])) as Record<
  JobColumn,
  number
>;

/** What to select of `jobs as job`, to be read by `jobFromValues`. */
export const JOB_SELECT = JOB_COLUMNS.map((column) => `job.${column}`).join(', ');
/** Where what is selected after a job begins. */
export const JOB_SELECT_LENGTH = JOB_COLUMNS.length;

/** What of a waiting job's row depends on the job; the rest is the same in all of an endpoint. */
const WAITING_COLUMNS = [
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
  'webhook',
  'attempt',
  'drained',
] as const satisfies readonly JobColumn[];

/** No id, number or JSON text holds it. */
const FIELD_SEPARATOR = '\u001d';

/**
 * A waiting `jobs as job`, and more, as one text, to be read by `splitLine` and `waitingJobFromFields`. With a
 * column for each, a take cost the server 10 µs for each job instead of 5.
 */
export function waitingJobLine(more: readonly string[]): string {
  const fields = WAITING_COLUMNS.map((column) =>
    // Text of a client, and null for most.
    column === 'webhook' ? `coalesce(to_json(job.webhook)::text, '')` : `job.${column}`,
  );
  return `concat_ws(chr(29), ${[...fields, ...more].join(', ')})`;
}

export function splitLine(line: string): string[] {
  return line.split(FIELD_SEPARATOR);
}

/** Where the fields after those of the job begin. */
export const WAITING_FIELDS = WAITING_COLUMNS.length;

/** All that a new job's row holds. */
export const INSERTED_COLUMNS = [...JOB_COLUMNS, 'next_check_at', 'idempotency_key', 'body_hash'] as const;

/** What the row of a new job says. The other columns are empty until the job is taken. */
export const NEW_JOB_COLUMNS = [
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
  'drained',
  'due_at',
  'next_check_at',
  'idempotency_key',
  'body_hash',
] as const satisfies readonly (typeof INSERTED_COLUMNS)[number][];

/** In the order of `NEW_JOB_COLUMNS`. */
export function newJobValues(job: Job, idempotency: Idempotency | undefined): Value[] {
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
    job.drained,
    job.dueAt,
    nextCheckAt(job, job.createdAt),
    idempotency?.key ?? null,
    idempotency?.bodyHash ?? null,
  ];
}

/** What a change may touch; the rest is fixed when a job is created. */
export const MUTABLE_COLUMNS = [
  'status',
  'position',
  'queued_at',
  'ttl_at',
  'ttl',
  'retries_left',
  'retries',
  'attempt',
  'lease',
  'worker_id',
  'taken_at',
  'ended_at',
  'drained',
  'due_at',
] as const satisfies readonly JobColumn[];

/** A job's columns by name, which are also the names of the parameters. */
export function jobValues(job: Job): Record<JobColumn, Value> {
  return {
    seq: job.seq,
    endpoint_id: job.endpointId,
    id: job.id,
    account_id: job.accountId,
    status: job.status,
    low_priority: job.lowPriority ? 1 : 0,
    position: job.position,
    created_at: job.createdAt,
    queued_at: job.queuedAt,
    ttl_at: job.ttlAt,
    ttl: job.ttl,
    execution_timeout: job.executionTimeout,
    retention: job.retention,
    retries_left: job.retriesLeft,
    retries: job.retries,
    webhook: job.webhook,
    attempt: job.attempt,
    lease: job.lease,
    worker_id: job.workerId,
    taken_at: job.takenAt,
    ended_at: job.endedAt,
    drained: job.drained,
    due_at: job.dueAt,
  };
}

export function insertedValues(
  job: Job,
  idempotency: Idempotency | undefined,
): Record<(typeof INSERTED_COLUMNS)[number], Value> {
  return {
    ...jobValues(job),
    next_check_at: nextCheckAt(job, job.createdAt),
    idempotency_key: idempotency?.key ?? null,
    body_hash: idempotency?.bodyHash ?? null,
  };
}

export function jobFromValues(values: readonly Value[]): Job {
  return {
    endpointId: values[INDEX.endpoint_id] as string,
    seq: values[INDEX.seq] as number,
    id: values[INDEX.id] as string,
    accountId: values[INDEX.account_id] as string,
    status: values[INDEX.status] as JobStatus,
    lowPriority: values[INDEX.low_priority] === 1,
    position: values[INDEX.position] as number,
    createdAt: values[INDEX.created_at] as number,
    queuedAt: values[INDEX.queued_at] as number,
    ttlAt: values[INDEX.ttl_at] as number,
    ttl: values[INDEX.ttl] as number,
    executionTimeout: values[INDEX.execution_timeout] as number,
    retention: values[INDEX.retention] as number,
    retriesLeft: values[INDEX.retries_left] as number,
    retries: values[INDEX.retries] as number,
    webhook: values[INDEX.webhook] as string | null,
    attempt: values[INDEX.attempt] as number,
    lease: values[INDEX.lease] as string | null,
    workerId: values[INDEX.worker_id] as string | null,
    takenAt: values[INDEX.taken_at] as number | null,
    endedAt: values[INDEX.ended_at] as number | null,
    drained: values[INDEX.drained] as number,
    dueAt: values[INDEX.due_at] as number,
  };
}

export function waitingJobFromFields(endpointId: string, fields: readonly string[]): Job {
  const webhook = fields[13] as string;
  const ttlAt = Number(fields[7]);
  return {
    endpointId,
    seq: Number(fields[0]),
    id: fields[1] as string,
    accountId: fields[2] as string,
    status: 'IN_QUEUE',
    lowPriority: fields[3] === '1',
    position: Number(fields[4]),
    createdAt: Number(fields[5]),
    queuedAt: Number(fields[6]),
    ttlAt,
    ttl: Number(fields[8]),
    executionTimeout: Number(fields[9]),
    retention: Number(fields[10]),
    retriesLeft: Number(fields[11]),
    retries: Number(fields[12]),
    webhook: webhook === '' ? null : (JSON.parse(webhook) as string),
    attempt: Number(fields[14]),
    lease: null,
    workerId: null,
    takenAt: null,
    endedAt: null,
    drained: Number(fields[15]),
    dueAt: ttlAt,
  };
}

/** A job's payloads, where `jobs as job` is joined with its request (`withRequests`). */
export const PAYLOAD_SELECT = 'request.request, job.output, job.error';

/** `jobs`: the table as `job`. */
export function withRequests(jobs = 'jobs as job'): string {
  return `${jobs} join job_requests as request on request.endpoint_id = job.endpoint_id and request.seq = job.seq`;
}

/** The size of a job's payloads in bytes; both databases know it without reading them. */
export const PAYLOAD_BYTES =
  'octet_length(request.request) + coalesce(octet_length(job.output), 0) + coalesce(octet_length(job.error), 0)';

const IS_SHOWN_WITH_REQUEST = `job.status in ('IN_QUEUE', 'IN_PROGRESS')`;
const SHOWN_BYTES = `case when ${IS_SHOWN_WITH_REQUEST} then octet_length(request.request) else 0 end
  + coalesce(octet_length(job.output), 0) + coalesce(octet_length(job.error), 0)`;

/** The size of what is shown of a job, and that itself where it is not larger than `:max_bytes`. */
export const OUTLINE_SELECT = `${SHOWN_BYTES},
  case when ${IS_SHOWN_WITH_REQUEST} and ${SHOWN_BYTES} <= :max_bytes then request.request end,
  case when ${SHOWN_BYTES} <= :max_bytes then job.output end,
  case when ${SHOWN_BYTES} <= :max_bytes then job.error end`;

export const IS_TERMINAL = `status in (${TERMINAL_STATUSES.map((status) => `'${status}'`).join(', ')})`;

/**
 * How much later than its retention ends the row of an ended job may be deleted. No interface shows it
 * meanwhile.
 */
const MAX_RECHECK_DELAY_MS = 60_000;

/**
 * When the reaper must check the row next (`next_check_at`), for a job that is not due now. It is chosen so
 * that a take and an end need not move it, and so leave its index alone: whenever the job ends after this
 * moment, its retention ends at most `MAX_RECHECK_DELAY_MS` before `next_check_at`.
 */
export function nextCheckAt(job: Job, now: number): number {
  if (job.status !== 'IN_QUEUE' && job.status !== 'IN_PROGRESS') return job.dueAt;
  return Math.min(job.ttlAt, now + job.retention + MAX_RECHECK_DELAY_MS);
}

/** How often one search for due jobs may find rows whose check is only postponed. */
export const MAX_DUE_SCANS = 10;

/** A row of `JOB_SELECT` and `PAYLOAD_SELECT`. */
export function jobWithPayloadsFromValues(values: readonly Value[]): JobWithPayloads {
  const [request, output, error] = values.slice(JOB_SELECT_LENGTH) as [string, string | null, string | null];
  return { job: jobFromValues(values), payloads: { request, output, error } };
}

/** A row of `JOB_SELECT` and `OUTLINE_SELECT`; payloads of more than `maxBytes` are left out. */
export function outlineFromValues(values: readonly Value[], maxBytes: number): JobOutline {
  const [bytes, request, output, error] = values.slice(JOB_SELECT_LENGTH) as [
    number,
    string | null,
    string | null,
    string | null,
  ];
  return {
    job: jobFromValues(values),
    bytes: Number(bytes),
    payloads: Number(bytes) > maxBytes ? undefined : { output, error, ...(request !== null && { request }) },
  };
}
