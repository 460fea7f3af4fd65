import type { Delivery, Job, Payloads } from '../../domain/job-records.ts';
import { webhookBody } from './webhook-payload.ts';

/**
 * A **delivery** is one webhook. It is sent in a **series** of attempts, with a pause between them, until the
 * receiver accepts it or the series is over. A manual redelivery is another series of the same delivery.
 * Attempt numbers continue, and every series starts after a multiple of its length: with three attempts, the
 * second one is 4, 5, 6.
 */
export interface RetryPolicy {
  /** Attempts of one series. */
  attempts: number;
  /** Milliseconds between two of them. */
  pause: number;
}

/** The outcome of one attempt: the receiver's status, or why there was none. */
export type AttemptOutcome = { status: number } | { error: string };

/** Limits the stored reason, so that a receiver cannot fill the database with it. */
const MAX_ERROR_LENGTH = 300;

/** The delivery of an ended job, due immediately. */
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

/** The number of the next attempt. */
export function nextAttemptNumber(
  delivery: Pick<Delivery, 'attempts' | 'lastError'>,
  { attempts }: RetryPolicy,
): number {
  // Within a series there is always an error after an attempt: an accepted one ends it.
  const beginsSeries = delivery.lastError === null;
  return (beginsSeries ? Math.ceil(delivery.attempts / attempts) * attempts : delivery.attempts) + 1;
}

/** The delivery after an attempt. */
export function afterAttempt(
  delivery: Delivery,
  outcome: AttemptOutcome,
  rules: RetryPolicy,
  now: number,
): Delivery {
  const attempts = nextAttemptNumber(delivery, rules);
  const attempted = {
    ...delivery,
    attempts,
    lastStatus: 'status' in outcome ? outcome.status : null,
    lastError: reasonOf(outcome),
    updatedAt: now,
  };
  if (isAccepted(outcome)) return { ...attempted, state: 'delivered', nextAt: null };
  if (endsSeries(attempts, rules)) return { ...attempted, state: 'failed', nextAt: null };
  return { ...attempted, state: 'pending', nextAt: now + rules.pause };
}

/** Manual redelivery. A pending delivery is left alone: its next attempt comes anyway. */
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
