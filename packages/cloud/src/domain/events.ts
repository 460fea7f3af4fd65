import type { EventBus } from '../support/event-bus.ts';
import type { Worker } from './endpoints/worker-record.ts';
import type { Job, JobStatus } from './job-records.ts';

/**
 * Where a change was made: by a request to this server, by this server's reconciler, or by another server on
 * the same database.
 */
export type ChangeSource = 'request' | 'reconciler' | 'other-server';

/** It did not start, was not ready in time, exited, or was killed by a signal. */
export const WORKER_CRASH_KINDS = ['start', 'timeout', 'exit', 'signal'] as const;
export type WorkerCrashKind = (typeof WORKER_CRASH_KINDS)[number];

export const POD_CRASH_KINDS = ['start', 'exit'] as const;
export type PodCrashKind = (typeof POD_CRASH_KINDS)[number];

/**
 * Events between the parts of this server. An event carries no data, only
 * what has changed: a listener reads the store where it needs to know more. Exception: a job,
 * which changes too often to be read again.
 */
export interface CloudEvents {
  /** Jobs wait in the queue of this endpoint. */
  'jobs.queued': { endpointId: string };
  /**
   * This server stored a new status of a job; `from` is undefined for a new job, and `leaseLost` says that
   * its worker was lost. Published for every job: listeners must be cheap.
   */
  'job.changed': { job: Job; from: JobStatus | undefined; leaseLost?: true };
  /** Jobs of this endpoint changed on another server, or many at once; which ones is not known. */
  'jobs.changed': { endpointId: string };
  /** A webhook is due now. */
  'webhook.due': { endpointId: string };
  /** A worker asked to be replaced. */
  'worker.refresh-requested': { endpointId: string; workerId: string; source: ChangeSource };
  /**
   * The gateway of another server has requests for this endpoint: how many, and in flight with which workers.
   */
  'endpoint.demand': {
    endpointId: string;
    server: string;
    requests: number;
    inFlight: Readonly<Record<string, number>>;
  };
  /** A new state of a worker was stored, or it became busy or idle. */
  'worker.changed': { endpointId: string; workerId: string; source: ChangeSource };
  /** The first heartbeat of a worker came. */
  'worker.ready': { worker: Worker };
  /** A worker ended by itself; `kind` says how. */
  'worker.crashed': { endpointId: string; kind: WorkerCrashKind };
  /** An endpoint was created or changed. Without an id, any endpoint may have changed. */
  'endpoint.changed': { endpointId?: string; source: ChangeSource };
  /** An endpoint was deleted from the store. Its jobs and workers may still be there. */
  'endpoint.removed': { endpointId: string; accountId: string; source: ChangeSource };
  /** A pod's desired or observed state changed. */
  'pod.changed': { podId: string; source: ChangeSource };
  /** An engine started the instance of a pod. */
  'pod.started': { podId: string; dataCenterId: string };
  /** A pod did not start, or ended by itself with an error. */
  'pod.crashed': { podId: string; kind: PodCrashKind };
  /** A network volume was created, changed or deleted. */
  'volume.changed': { volumeId: string; accountId: string; source: ChangeSource };
  /** A limit of an account was set or removed. */
  'quota.changed': { accountId: string; limit: string; maximum: number | null; source: ChangeSource };
  /** An account, or with an empty id the installation, uses much of a limit; a ratio of 1 is all of it. */
  'quota.warning': { accountId: string; limit: string; ratio: number; source: ChangeSource };
  /** An API key or an S3 key was changed or revoked. */
  'keys.changed': { source: ChangeSource };
  /** Notifications of other servers may be lost: whatever depends on them reads the store again. */
  'wakeups.missed': Record<string, never>;
}

export type CloudEventBus = EventBus<CloudEvents>;
