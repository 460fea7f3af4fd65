import type { Job, JobWithPayloads } from '../domain/job-records.ts';
import { newJobId } from '../domain/job-ids.ts';
import { dueAt } from '../domain/job-transitions.ts';
import { JOB_RETENTION_MS } from '../domain/limits.ts';

/** The endpoint settings that apply to its jobs. */
export interface EndpointQueueSettings {
  id: string;
  accountId: string;
  /** 0 means no limit. */
  executionTimeout: number;
  jobTtl: number;
  /** Overrides the default retention; null keeps it. */
  retention: number | null;
  maxRetries: number;
}

/** The validated options of a request. */
export interface JobOptions {
  executionTimeout?: number;
  ttl?: number;
  lowPriority?: boolean;
  retention?: number;
  webhook?: string;
  /** Milliseconds that a synchronous caller waits; undefined for `run`. */
  sync?: { wait: number; waitGiven: boolean };
}

/** Creates a queued job. `longestRetention` is of the account of its endpoint. */
export function newJob(
  endpoint: EndpointQueueSettings,
  accountId: string,
  request: string,
  terms: JobOptions,
  seq: number,
  now: number,
  longestRetention?: number,
): JobWithPayloads {
  const ttl = terms.ttl ?? endpoint.jobTtl;
  const job: Job = {
    endpointId: endpoint.id,
    seq,
    id: newJobId(seq, terms.sync !== undefined),
    accountId,
    status: 'IN_QUEUE',
    lowPriority: terms.lowPriority ?? false,
    position: seq,
    createdAt: now,
    queuedAt: now,
    ttl,
    ttlAt: now + ttl,
    executionTimeout: terms.executionTimeout ?? endpoint.executionTimeout,
    retention: retentionOf(endpoint, terms, longestRetention),
    retriesLeft: endpoint.maxRetries,
    retries: 0,
    webhook: terms.webhook ?? null,
    attempt: 0,
    lease: null,
    workerId: null,
    takenAt: null,
    endedAt: null,
    drained: 0,
    dueAt: 0,
  };
  job.dueAt = dueAt(job, now);
  return { job, payloads: { request, output: null, error: null } };
}

/**
 * From the request, else from the endpoint, else the default; never longer than the account allows. What an
 * account allows is also its default for `run`.
 */
export function retentionOf(
  endpoint: Pick<EndpointQueueSettings, 'retention'>,
  options: JobOptions,
  longest?: number,
): number {
  return Math.min(wantedRetention(endpoint, options, longest), longest ?? Infinity);
}

function wantedRetention(
  endpoint: Pick<EndpointQueueSettings, 'retention'>,
  { retention, sync }: JobOptions,
  longest: number | undefined,
): number {
  if (retention !== undefined) return retention;
  if (endpoint.retention !== null) return endpoint.retention;
  if (sync === undefined) return longest ?? JOB_RETENTION_MS.run;
  return sync.waitGiven
    ? Math.max(JOB_RETENTION_MS.runsync, Math.min(sync.wait, JOB_RETENTION_MS.longestRunsync))
    : JOB_RETENTION_MS.runsync;
}

export function clamp(value: number, { minimum, maximum }: { minimum: number; maximum: number }): number {
  return Math.min(maximum, Math.max(minimum, value));
}
