import type { TerminalStatus, Job, JobChange, Claim, TakeRequest } from './job-records.ts';
import { hasEnded } from './job-status.ts';

/**
 * The state machine, as pure functions from a job to its next state. `undefined` means no change:
 * the job has moved on, or the caller does not hold its lease.
 *
 *   IN_QUEUE     take -> IN_PROGRESS    cancel -> CANCELLED    time to live -> TIMED_OUT, gone    purge -> gone
 *   IN_PROGRESS  finish -> COMPLETED or FAILED    cancel -> CANCELLED    execution time -> TIMED_OUT
 *                worker lost -> IN_QUEUE, at its old place, while retries are left; then FAILED
 *                ended without a result -> FAILED
 *                delivery failed -> IN_QUEUE, as if never taken    time to live -> TIMED_OUT, gone
 *                never reported, or not started by a lost worker -> IN_QUEUE, at its old place, without a retry
 *                (at most MAX_FREE_RETURNS times, then as if the worker was lost)
 *   FAILED, TIMED_OUT    retry -> IN_QUEUE, at the end    retention -> gone
 *   COMPLETED, CANCELLED    retention -> gone
 */

/** How long a lease lasts before its worker's heartbeat is checked. */
export const LEASE_MS = 10_000;

/**
 * How often a job goes back to the queue without a retry because its worker did not start it, as far as is known.
 * A job that ends its worker before the worker reports it looks the same, and must not do so forever.
 */
export const MAX_FREE_RETURNS = 10;

export interface LeaseHolder {
  workerId: string;
  /** Without a token, the worker alone is asked for: the public protocol carries none. */
  lease?: string | undefined;
  /** How the worker calls the job, where it is known here by its number. */
  jobId?: string;
}

export function take(job: Job, workerId: string, lease: string, now: number): JobChange {
  return withDue(
    { ...job, status: 'IN_PROGRESS', attempt: job.attempt + 1, lease, workerId, takenAt: now, endedAt: null },
    now,
  );
}

export function holdsLease(job: Job, { workerId, lease, jobId }: LeaseHolder): boolean {
  return (
    job.status === 'IN_PROGRESS' &&
    job.workerId === workerId &&
    (lease === undefined || job.lease === lease) &&
    (jobId === undefined || job.id === jobId)
  );
}

export interface AttemptResult {
  output: string | null;
  error: string | null;
  /** How long the job waited in its worker before it began, in milliseconds. */
  waited?: number;
}

export function finish(
  job: Job,
  holder: LeaseHolder,
  { output, error, waited = 0 }: AttemptResult,
  now: number,
): JobChange | undefined {
  if (!holdsLease(job, holder)) return undefined;
  const begunAt = waited === 0 ? job.takenAt : Math.min(now, (job.takenAt ?? now) + waited);
  const { job: ended } = end(job, error === null ? 'COMPLETED' : 'FAILED', now, begunAt);
  return { job: ended, output, error };
}

/** Progress shows as the output of a job that still runs. */
export function progress(job: Job, holder: LeaseHolder, output: string): JobChange | undefined {
  return holdsLease(job, holder) ? { job, output } : undefined;
}

/**
 * Its stream was delivered up to this number. No change where another reader has delivered since the job was
 * read as `seen`, or where a new attempt has begun.
 */
export function drain(job: Job, seen: Job, number: number): JobChange | undefined {
  return job.drained === seen.drained && job.attempt === seen.attempt && job.lease === seen.lease
    ? { job: { ...job, drained: number } }
    : undefined;
}

export function cancel(job: Job, now: number): JobChange | undefined {
  return hasEnded(job) ? undefined : { ...end(job, 'CANCELLED', now), output: null };
}

function canRetry({ status }: Pick<Job, 'status'>): boolean {
  return status === 'FAILED' || status === 'TIMED_OUT';
}

/**
 * A retry by a client: the same job and input at the end of the queue, everything it left behind removed, with a new
 * time to live.
 */
export function retry(job: Job, position: number, now: number): JobChange | undefined {
  if (!canRetry(job)) return undefined;
  const queued: Job = { ...waiting(job), position, queuedAt: now, ttlAt: now + job.ttl, drained: 0 };
  return { ...withDue(queued, now), output: null, error: null, clearChunks: true };
}

/**
 * The worker is gone. While retries are left the job goes back to its old place, which is the head; then it
 * has failed.
 */
export function loseWorker(
  job: Job,
  holder: LeaseHolder,
  reason: string,
  now: number,
): JobChange | undefined {
  if (!holdsLease(job, holder)) return undefined;
  if (job.retriesLeft <= 0) return { job, ...failWithoutResult(job, holder, reason, now), leaseLost: true };
  const queued: Job = {
    ...waiting(job),
    retriesLeft: job.retriesLeft - 1,
    retries: job.retries + 1,
    drained: 0,
  };
  return { ...withDue(queued, now), output: null, clearChunks: true, leaseLost: true };
}

/**
 * The worker is gone and cannot have started the job: it goes back to its old place without a retry. `undefined`
 * also where that has happened too often. Each take counts as an attempt: those beyond the retries were returned,
 * or were retries by hand.
 */
export function returnUnstarted(job: Job, holder: LeaseHolder, now: number): JobChange | undefined {
  if (!holdsLease(job, holder) || job.attempt - 1 - job.retries >= MAX_FREE_RETURNS) return undefined;
  return { ...withDue({ ...waiting(job), drained: 0 }, now), output: null, clearChunks: true };
}

/**
 * The worker lives, does not have the job, and never reported it: the job was cut off on its way, or the worker
 * was started anew. Where jobs may start twice, this costs no retry.
 */
export function loseUnreported(
  job: Job,
  holder: LeaseHolder,
  reason: string,
  now: number,
): JobChange | undefined {
  const mayStartTwice = job.retries + job.retriesLeft > 0;
  return (
    (mayStartTwice ? returnUnstarted(job, holder, now) : undefined) ?? loseWorker(job, holder, reason, now)
  );
}

/** The job was begun and is not to be begun again. */
export function failWithoutResult(
  job: Job,
  holder: LeaseHolder,
  reason: string,
  now: number,
): JobChange | undefined {
  if (!holdsLease(job, holder)) return undefined;
  return {
    ...end(job, 'FAILED', now),
    error: JSON.stringify(`${reason} (after ${job.retries} ${job.retries === 1 ? 'retry' : 'retries'})`),
  };
}

/** The job never reached the worker: it goes back as if it had never been taken. */
export function returnToQueue(job: Job, holder: LeaseHolder, now: number): JobChange | undefined {
  if (!holdsLease(job, holder)) return undefined;
  // Whatever a worker says before, a chunk of this attempt must not pass for one of the next.
  return { ...withDue({ ...waiting(job), attempt: job.attempt - 1, drained: 0 }, now), clearChunks: true };
}

/** Its worker lives: look again later. */
export function renewLease(job: Job, holder: LeaseHolder, now: number): JobChange | undefined {
  return holdsLease(job, holder) ? withDue({ ...job }, now) : undefined;
}

/** What time does to a job that is due; `workerLives` answers for the one that holds it. */
export function onDue(job: Job, now: number, workerLives: boolean): JobChange | undefined {
  if (now < job.dueAt) return undefined;
  if (isExpired(job, now) && !hasEnded(job)) return expire(job, now);
  if (job.status === 'IN_QUEUE') return withDue({ ...job }, now);
  if (job.status !== 'IN_PROGRESS') return { job, remove: true };
  if (isOverExecutionTime(job, now))
    return {
      ...end(job, 'TIMED_OUT', now),
      error: JSON.stringify(`the job ran longer than its execution timeout of ${job.executionTimeout} ms`),
    };
  const holder = { workerId: job.workerId ?? '', lease: job.lease ?? undefined };
  return workerLives
    ? renewLease(job, holder, now)
    : loseWorker(job, holder, 'the worker that ran the job was lost', now);
}

/** It ends with its time to live, and is not kept. */
export function expire(job: Job, now: number): JobChange {
  return {
    ...end(job, 'TIMED_OUT', now),
    output: null,
    error: JSON.stringify('the time to live of the job is over'),
    remove: true,
  };
}

/** Its time to live is over. */
export function isExpired({ ttlAt }: Job, now: number): boolean {
  return now >= ttlAt;
}

function isOverExecutionTime(job: Job, now: number): boolean {
  return (
    job.status === 'IN_PROGRESS' &&
    job.executionTimeout > 0 &&
    now >= (job.takenAt ?? now) + job.executionTimeout
  );
}

/** A time to live that is set while the job lives counts from now. */
export function setTimeToLive(job: Job, ttl: number, now: number): JobChange | undefined {
  return hasEnded(job) ? undefined : withDue({ ...job, ttl, ttlAt: now + ttl }, now);
}

export function dueAt(job: Job, now: number): number {
  switch (job.status) {
    case 'IN_QUEUE':
      return job.ttlAt;
    case 'IN_PROGRESS': {
      const over = job.executionTimeout > 0 ? (job.takenAt ?? now) + job.executionTimeout : Infinity;
      return Math.min(now + LEASE_MS, over, job.ttlAt);
    }
    case 'COMPLETED':
    case 'FAILED':
    case 'CANCELLED':
    case 'TIMED_OUT':
      return Math.min((job.endedAt ?? now) + job.retention, job.ttlAt);
  }
}

function end(job: Job, status: TerminalStatus, now: number, takenAt = job.takenAt): JobChange {
  return withDue({ ...job, status, takenAt, endedAt: now, lease: null }, now);
}

function waiting(job: Job): Job {
  return { ...job, status: 'IN_QUEUE', lease: null, workerId: null, takenAt: null, endedAt: null };
}

/** `made`: a job that was just made, and that nobody else has. */
function withDue(made: Job, now: number): JobChange {
  made.dueAt = dueAt(made, now);
  return { job: made };
}

/** A take as of now, for a store. */
export function takeRequest(
  claims: () => readonly Claim[],
  now: number,
): Omit<TakeRequest, 'onLockedSkipped'> {
  return {
    claims,
    takenAt: now,
    leaseCheckAt: now + LEASE_MS,
    startAttempt: (job, { workerId, lease }) => take(job, workerId, lease, now),
  };
}
