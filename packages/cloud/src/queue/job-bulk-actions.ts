import { hasEnded } from '../domain/job-status.ts';
import { seqFromJobId } from '../domain/job-ids.ts';
import type { Job } from '../domain/job-records.ts';
import type { JobAction } from '../domain/job-search-query.ts';
import { BerthError } from '../support/errors.ts';
import { withMember } from '../support/json-text.ts';
import type { JobQueue } from './job-queue.ts';
import type { EndpointQueueSettings, JobOptions } from './job-submission.ts';

/** Changes that are asked for at a time: the store commits them together. */
const BATCH_JOBS = 50;

export interface JobBulkResult {
  /** The jobs that were changed; of a redrive, with the id of the new job. */
  done: { id: string; newId?: string }[];
  skipped: { id: string; reason: string }[];
}

/** Who acts on the jobs of which endpoint. */
export interface BulkRequest {
  endpoint: EndpointQueueSettings;
  accountId: string;
  action: JobAction;
  ids: readonly string[];
  /** JSON text of the input of new jobs, where it is not that of the old ones. */
  input?: string | undefined;
}

/** Retries, cancels or sends again several jobs. A job that cannot be changed is skipped, with the reason. */
export async function actOnJobs(queue: JobQueue, request: BulkRequest): Promise<JobBulkResult> {
  const result: JobBulkResult = { done: [], skipped: [] };
  for (let first = 0; first < request.ids.length; first += BATCH_JOBS) {
    const batch = request.ids.slice(first, first + BATCH_JOBS);
    const outcomes = await Promise.all(batch.map((id) => actOnJob(queue, request, id)));
    for (const [index, outcome] of outcomes.entries()) {
      const id = batch[index] as string;
      if (typeof outcome === 'string') result.skipped.push({ id, reason: outcome });
      else result.done.push({ id, ...outcome });
    }
  }
  return result;
}

const GONE = 'it is unknown or its result has expired';

/** Why it was skipped, as text; otherwise what was done. */
async function actOnJob(
  queue: JobQueue,
  request: BulkRequest,
  id: string,
): Promise<string | { newId?: string }> {
  const seq = seqFromJobId(id);
  const found = seq === undefined ? undefined : await queue.findOutline(request.endpoint.id, seq, 0);
  if (seq === undefined || found?.job.id !== id) return GONE;
  try {
    switch (request.action) {
      case 'retry':
        return await retry(queue, request.endpoint.id, seq);
      case 'cancel':
        return await cancel(queue, found.job);
      case 'redrive':
        return await redrive(queue, request, found.job);
    }
  } catch (error) {
    // A limit of the account, or a full disk: those before it are done.
    if (error instanceof BerthError && error.code !== 'internal') return error.message;
    throw error;
  }
}

async function retry(
  queue: JobQueue,
  endpointId: string,
  seq: number,
): Promise<string | Record<never, never>> {
  const done = await queue.retry(endpointId, seq);
  if (done === undefined) return GONE;
  return done.changed
    ? {}
    : `only a FAILED or TIMED_OUT job can be retried; this one is ${done.before.status}`;
}

async function cancel(queue: JobQueue, job: Job): Promise<string | Record<never, never>> {
  if (hasEnded(job)) return `it has ended: ${job.status}`;
  const after = await queue.cancel(job.endpointId, job.seq);
  if (after === undefined) return GONE;
  return after.status === 'CANCELLED' ? {} : `it has ended: ${after.status}`;
}

/** A new job from one that has ended, on the same terms. */
async function redrive(
  queue: JobQueue,
  { endpoint, accountId, input }: BulkRequest,
  job: Job,
): Promise<string | { newId: string }> {
  if (!hasEnded(job)) return `it has not ended: ${job.status}`;
  const found = await queue.find(endpoint.id, job.seq);
  if (found === undefined) return GONE;
  const request = queue.openRequest(endpoint.id, found.payloads.request);
  const { id } = await queue.submit({
    endpoint,
    accountId,
    request: input === undefined ? request : withMember(request, 'input', input),
    options: termsOf(job),
  });
  return { newId: id };
}

/**
 * What the old request asked for. A synchronous one is kept as long as any other: nobody waits for the new
 * one.
 */
function termsOf(job: Job): JobOptions {
  return {
    executionTimeout: job.executionTimeout,
    ttl: job.ttl,
    lowPriority: job.lowPriority,
    ...(!job.id.startsWith('sync-') && { retention: job.retention }),
    ...(job.webhook !== null && { webhook: job.webhook }),
  };
}
