import { newJob } from '../../queue/job-submission.ts';
import type { JobOptions } from '../../queue/job-submission.ts';
import * as transitions from '../../domain/job-transitions.ts';
import type { Job, JobChange, JobWithPayloads } from '../../domain/job-records.ts';
import { execute, raw, rowValues, sql } from '../sql.ts';
import type { Row, Steps } from '../sql.ts';
import { NOW, queueSettings } from '../queue-settings.fixture.ts';

const HOLDER = { workerId: 'w' };

export const submitted = (seq: number, options: JobOptions = {}): JobWithPayloads =>
  newJob(queueSettings(), 'one', `{"input":"é\\n\\"${seq}.0"}`, options, seq, NOW);
export const taken = ({ job, payloads }: JobWithPayloads): JobWithPayloads => ({
  job: transitions.take(job, 'w', `lease ${job.seq}`, NOW + 5).job,
  payloads,
});
export const ended = (
  { job, payloads }: JobWithPayloads,
  output: string | null,
  error: string | null,
): JobWithPayloads => ({
  job: (transitions.finish(job, HOLDER, { output, error }, NOW + 20) as JobChange).job,
  payloads: { ...payloads, output, error },
});

/** The row that a job had: a running one waits, as far as it says. */
export const oldJobRow = ({ job, payloads }: JobWithPayloads): Row => ({
  seq: job.seq,
  endpoint_id: job.endpointId,
  id: job.id,
  account_id: job.accountId,
  status: job.status === 'IN_PROGRESS' ? 'IN_QUEUE' : job.status,
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
  attempt: job.status === 'IN_PROGRESS' ? job.attempt - 1 : job.attempt,
  worker_id: job.endedAt === null ? null : job.workerId,
  taken_at: job.endedAt === null ? null : job.takenAt,
  ended_at: job.endedAt,
  drained: job.drained,
  due_at: job.status === 'IN_PROGRESS' ? job.ttlAt : job.dueAt,
  look_at: job.createdAt + job.retention + 60_000,
  idempotency_key: job.seq === 1 ? 'the key' : null,
  body_hash: job.seq === 1 ? 'the hash' : null,
  request: payloads.request,
  output: payloads.output,
  error: payloads.error,
});
/** The row of `job_leases` that a running job had. */
export const oldLeaseRow = ({ seq, endpointId, attempt, ...job }: Job): Row => ({
  seq,
  endpoint_id: endpointId,
  worker_id: job.workerId,
  lease: job.lease,
  attempt,
  taken_at: job.takenAt,
  due_at: job.dueAt,
});

export function* insert(table: string, row: Row): Steps<void> {
  yield* execute(sql`insert into ${raw(table)} ${rowValues(row)}`);
}
