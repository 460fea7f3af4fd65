import type { Delivery, Job, Payloads } from '../../domain/job-records.ts';
import { webhookBody } from './webhook-payload.ts';

/**
 * A **delivery** is one webhook on its way. It goes out in a **series** of attempts, a pause
 * between each two, until the receiver accepts it or the series is over. By hand it can be
 * sent once more: another series of the same delivery. Attempts are numbered on, and every
 * series begins after a multiple of its length: with three attempts, the second one is 4, 5, 6.
 */
export interface RetryPolicy {
  /** Attempts of one series. */
  attempts: number;
  /** Milliseconds between two of them. */
  pause: number;
}

/** What one attempt brought: the receiver's answer, or why there was none. */
export type AttemptOutcome = { status: number } | { error: string };

/** A reason for people; a receiver does not get to fill the database with it. */
const MAX_ERROR_LENGTH = 300;

/** The delivery of a job that has ended, due at once. */
export function deliveryOf(job: Job, payloads: Payloads, id: string, now: number): Delivery {
  return {
    id,
    endpointId: job.endpointId,
    accountId: job.accountId,
    jobId: job.id,
    url: job.webhook ?? '',
    body: webhookBody(job, payloads),
    attempts: 0,
    nextAt: now,
    state: 'pending',
    lastStatus: null,
    lastError: null,
    createdAt: now,
    updatedAt: now,
  };
}

export function isAccepted(outcome: AttemptOutcome): boolean {
  return 'status' in outcome && outcome.status >= 200 && outcome.status <= 299;
}

/** The number of the attempt that comes next. */
export function nextAttemptNumber(
  delivery: Pick<Delivery, 'attempts' | 'lastError'>,
  { attempts }: RetryPolicy,
): number {
  // After an attempt within a series there is always an error: one that was accepted ends it.
  const beginsSeries = delivery.lastError === null;
  return (beginsSeries ? Math.ceil(delivery.attempts / attempts) * attempts : delivery.attempts) + 1;
}

/** What becomes of a delivery after an attempt. */
export function afterAttempt(
  delivery: Delivery,
  outcome: AttemptOutcome,
  rules: RetryPolicy,
  now: number,
): Delivery {
  const attempts = nextAttemptNumber(delivery, rules);
  const told = {
    ...delivery,
    attempts,
    lastStatus: 'status' in outcome ? outcome.status : null,
    lastError: reasonOf(outcome),
    updatedAt: now,
  };
  if (isAccepted(outcome)) return { ...told, state: 'delivered', nextAt: null };
  if (endsSeries(attempts, rules)) return { ...told, state: 'failed', nextAt: null };
  return { ...told, state: 'pending', nextAt: now + rules.pause };
}

/** Once more, by hand. One that is still on its way is left alone: its next attempt comes anyhow. */
export function redelivery(delivery: Delivery, now: number): Delivery {
  return delivery.state === 'pending'
    ? delivery
    : { ...delivery, state: 'pending', nextAt: now, lastStatus: null, lastError: null, updatedAt: now };
}

function endsSeries(attempts: number, rules: RetryPolicy): boolean {
  return attempts % rules.attempts === 0;
}

function reasonOf(outcome: AttemptOutcome): string | null {
  if ('error' in outcome) return outcome.error.slice(0, MAX_ERROR_LENGTH);
  if (isAccepted(outcome)) return null;
  const redirect = outcome.status >= 300 && outcome.status <= 399;
  return `the receiver answered ${outcome.status}${redirect ? '; redirects are not followed' : ''}`;
}
