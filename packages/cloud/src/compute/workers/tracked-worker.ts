import type { InstanceAddress } from '../../engines/instance.ts';
import type { Worker } from '../../domain/endpoints/worker-record.ts';

/** A live worker: its record and what is known of it now. */
export interface TrackedWorker {
  record: Worker;
  busy: boolean;
  /** It speaks the fast worker channel. */
  accelerated: boolean;
  idleSince: number | null;
  /** Whether it has had a request, on a load balancing endpoint. */
  served: boolean;
  /** Failed health checks in a row. */
  failedChecks: number;
  /** Null while it is healthy. */
  unhealthyReason: string | null;
  /** Where requests reach it, on a load balancing endpoint. */
  address: InstanceAddress | undefined;
  checkedAt: number;
  /** Whether it is being probed until it is ready. */
  isProbing: boolean;
  /** Since when its instance runs; null while it is being started. */
  runningSince: number | null;
  /** The last progress message of its engine about the start. */
  progress: string | null;
  /** Why it is drained; null where there is none to show. */
  drainReason: string | null;
  /** Resolves when the start has ended, successful or not. */
  launching: Promise<void>;
  /** Resolves when draining has ended, successful or not. */
  draining: Promise<void>;
}

export function trackWorker(record: Worker): TrackedWorker {
  return {
    record,
    busy: false,
    accelerated: false,
    idleSince: null,
    served: false,
    failedChecks: 0,
    unhealthyReason: null,
    address: undefined,
    checkedAt: 0,
    isProbing: false,
    runningSince: null,
    progress: null,
    drainReason: null,
    launching: Promise.resolve(),
    draining: Promise.resolve(),
  };
}

/** Whether it takes work, or will soon. */
export function isActive({ record }: Pick<TrackedWorker, 'record'>): boolean {
  return record.state === 'ready' || record.state === 'starting';
}

/**
 * Whether it is ready for work, has none, and nothing is wrong with it; or its engine is still starting it, which
 * says when that has ended.
 */
export function isIdleOrLaunching(worker: TrackedWorker): boolean {
  const { record, busy, unhealthyReason, failedChecks } = worker;
  return (
    isLaunching(worker) ||
    (record.state === 'ready' && !busy && unhealthyReason === null && failedChecks === 0)
  );
}

/** Whether its container does not run yet. */
export function isLaunching({ record, runningSince }: TrackedWorker): boolean {
  return record.state === 'starting' && runningSince === null;
}

export type WorkerActivity = 'idle' | 'initializing' | 'running' | 'unhealthy';

/** What a worker does, as it is counted; undefined for one that ends before it was ready. */
export function activityOf({ record, busy, unhealthyReason }: TrackedWorker): WorkerActivity | undefined {
  if (record.state === 'leaving' && record.readyAt === null) return undefined;
  if (unhealthyReason !== null) return 'unhealthy';
  if (record.state === 'starting') return 'initializing';
  return busy ? 'running' : 'idle';
}
