import type { Job } from '../domain/job-records.ts';
import type { TraceContext } from '../domain/tracing.ts';
import type { JobSequence } from '../domain/job-ids.ts';
import type { SubmitResult } from '../store/job-store.ts';
import { BerthError } from '../support/errors.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { JobQueueDeps } from './job-queue-deps.ts';
import { newJob } from './job-submission.ts';
import type { EndpointQueueSettings, JobOptions } from './job-submission.ts';
import { STORE_RETRY_MS, withStoreRetries } from './store-retry.ts';

export interface SubmitRequest {
  endpoint: EndpointQueueSettings;
  accountId: string;
  /** The request body, unparsed. */
  request: string;
  options: JobOptions;
  idempotency?: { key: string; bodyHash: string };
  /** The span of the request, where requests are traced. */
  trace?: TraceContext;
}

interface JobSubmitterDeps
  extends Pick<
    JobQueueDeps,
    'admit' | 'longestRetention' | 'tracing' | 'credentials' | 'store' | 'clock' | 'wakeups' | 'events'
  > {
  numbers: JobSequence;
  dispatcher: Dispatcher;
}

/** Accepts jobs: a job exists when the store has it, and those who wait for jobs are woken then. */
export class JobSubmitter {
  readonly #deps: JobSubmitterDeps;

  constructor(deps: JobSubmitterDeps) {
    this.#deps = deps;
  }

  submit(request: SubmitRequest): Promise<Job> {
    return this.offer(this.#deps.numbers.next(), request).then(
      (stored) => this.resolveStored(request, stored) ?? this.submit(request),
    );
  }

  /** Stores a new job under this sequence number. */
  offer(seq: number, submitted: SubmitRequest): Promise<SubmitResult> {
    const admission = this.#deps.admit?.(submitted.endpoint.accountId, submitted.request);
    return admission === undefined
      ? this.#store(seq, submitted)
      : admission.then((onStored) => this.#store(seq, submitted).finally(onStored));
  }

  #store(
    seq: number,
    { endpoint, accountId, request, options, idempotency, trace }: SubmitRequest,
  ): Promise<SubmitResult> {
    const { store, clock, tracing } = this.#deps;
    const annotated =
      tracing === undefined || trace === undefined ? request : tracing.annotate(request, trace);
    const stored = this.#deps.credentials?.seal(annotated, endpoint.id) ?? annotated;
    const whole = newJob(
      endpoint,
      accountId,
      stored,
      options,
      seq,
      clock.now(),
      this.#deps.longestRetention?.(endpoint.accountId),
    );
    return withStoreRetries(() => {
      const submitting = store.submit(
        whole,
        idempotency,
        options.sync !== undefined && idempotency === undefined,
      );
      if (store.sameTurnTakes) this.#deps.dispatcher.wake(endpoint.id);
      return submitting;
    }, STORE_RETRY_MS.client);
  }

  /**
   * The stored job, or the earlier one with the same idempotency key. Undefined where another server used the
   * number for a job of its own.
   */
  resolveStored(
    { endpoint, idempotency }: SubmitRequest,
    { job, created, seenByTakes, bodyHash }: SubmitResult,
  ): Job | undefined {
    if (created) {
      if (!seenByTakes) {
        this.#deps.wakeups.publish({ kind: 'queue', endpointId: endpoint.id });
        this.#deps.dispatcher.wake(endpoint.id);
      }
      this.#deps.events.publish('jobs.queued', { endpointId: endpoint.id });
      this.#deps.events.publish('job.changed', { job, from: undefined });
      return job;
    }
    if (bodyHash === null) return undefined;
    if (bodyHash !== idempotency?.bodyHash)
      throw new BerthError(
        'conflict',
        'this Idempotency-Key was used with another body; use a new key for a new request',
      );
    return job;
  }
}
