import type { CloudEventBus } from '../domain/events.ts';
import type { Delivery, Job, JobWithPayloads } from '../domain/job-records.ts';
import type { JobTracing } from '../domain/tracing.ts';
import type { JobStore } from '../store/job-store.ts';
import type { WakeupBus } from '../store/wakeup-bus.ts';
import type { Clock } from '../support/clock.ts';
import type { Log } from '../support/log.ts';
import type { RequestCredentials } from './request-credentials.ts';

export interface JobQueueDeps {
  /** Whether an engine runs this worker, where that is known. */
  instanceRuns?(endpointId: string, workerId: string): Promise<boolean>;
  /** Whether this worker is known to have ended. A worker that no engine started is not known. */
  instanceEnded?(endpointId: string, workerId: string): Promise<boolean>;
  /** Whether one answer to job-take may carry several short jobs. Default: true. */
  takeAhead?: boolean;
  /**
   * Throws or rejects if the account may not queue this; undefined if it has no limit. What it resolves to is
   * called when the job is in the store, or not. Called for every job: it must be cheap.
   */
  admit?(accountId: string, request: string): Promise<() => void> | undefined;
  /** How long the jobs of an account are kept after their end, if it has a limit. Called for every job. */
  longestRetention?(accountId: string): number | undefined;
  /** Traces jobs; without it there are no traces. */
  tracing?: JobTracing;
  /** Seals the credentials in requests; without it they are stored as they came. */
  credentials?: RequestCredentials;
  store: JobStore;
  wakeups: WakeupBus;
  clock: Clock;
  log: Log;
  /** The delivery of a job's webhook, where it has one. */
  deliveryOf(job: Job, payloads: JobWithPayloads['payloads']): Delivery;
  events: CloudEventBus;
}
