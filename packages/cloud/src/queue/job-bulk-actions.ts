import { MAX_RUN_BODY_BYTES } from '../domain/limits.ts';
import { hasEnded } from '../domain/job-status.ts';
import { seqFromJobId } from '../domain/job-ids.ts';
import type { Job } from '../domain/job-records.ts';
import type { JobAction } from '../domain/job-search-query.ts';
import { BerthError } from '../support/errors.ts';
import { memberText, mergePatch, withMember } from '../support/json-text.ts';
import type { JobQueue } from './job-queue.ts';
import type { EndpointQueueSettings, JobOptions } from './job-submission.ts';

/** Changes that are asked for at a time: the store commits them together. */
const BATCH_JOBS = 50;

export interface JobBulkResult {
  /** The jobs that were changed; of a redrive, with the id of the new job. */
  done: { id: string; newId?: string }[];
  skipped: { id: string; reason: string }[];
}

/** The inputs of new jobs, where they are not those of the old ones. */
export type InputEdit =
  /** JSON texts by the ids of the old jobs. */
  | { inputs: ReadonlyMap<string, string> }
  /** A JSON merge patch for each of them. */
  | { patch: Readonly<Record<string, unknown>> };

/** Who acts on the jobs of which endpoint. */
export interface BulkRequest {
  endpoint: EndpointQueueSettings;
  accountId: string;
  action: JobAction;
  ids: readonly string[];
  edit?: InputEdit | undefined;
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
  { endpoint, accountId, edit }: BulkRequest,
  job: Job,
): Promise<string | { newId: string }> {
  if (!hasEnded(job)) return `it has not ended: ${job.status}`;
  const found = await queue.find(endpoint.id, job.seq);
  if (found === undefined) return GONE;
  const before = queue.openRequest(endpoint.id, found.payloads.request);
  const input = edit === undefined ? undefined : editedInput(edit, job.id, before);
  if (input === NO_OBJECT) return 'its input is not an object, so the patch has nothing to change';
  const request = input === undefined ? before : withMember(before, 'input', input);
  if (input !== undefined && Buffer.byteLength(request) > MAX_RUN_BODY_BYTES)
    return `with the patch it would be larger than ${MAX_RUN_BODY_BYTES} bytes`;
  const { id } = await queue.submit({ endpoint, accountId, request, options: termsOf(job) });
  return { newId: id };
}

const NO_OBJECT = Symbol('the input is not an object');

/** Undefined: the input stays as it is. */
function editedInput(edit: InputEdit, id: string, request: string): string | undefined | typeof NO_OBJECT {
  if ('inputs' in edit) return edit.inputs.get(id);
  const input = memberText(request, 'input');
  return input?.startsWith('{') === true ? mergePatch(input, edit.patch) : NO_OBJECT;
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
