import type { InstanceAddress } from '../../engines/instance.ts';
import type { Worker } from '../../domain/endpoints/worker-record.ts';

/** One worker as the fleet sees it now. */
export interface TrackedWorker {
  record: Worker;
  busy: boolean;
  idleSince: number | null;
  /** It was given a request, for a load balancing endpoint. */
  served: boolean;
  /** The last checks of its health in a row that failed. */
  strikes: number;
  unhealthy: string | null;
  /** Where requests reach it, for a load balancing endpoint. */
  address: InstanceAddress | undefined;
  checkedAt: number;
  /** It is being asked whether it is ready. */
  isProbing: boolean;
  /** Since when its instance runs; null while that is being brought about. */
  runningSince: number | null;
  /** The last that its engine said about the start. */
  progress: string | null;
  /** Why it was told to leave; null where there is nothing to say about that. */
  drainReason: string | null;
  /** Resolves when the start has come to an end, well or not. */
  launching: Promise<void>;
  /** Resolves when it has left after it was let go, or could not be. */
  draining: Promise<void>;
}

export function trackWorker(record: Worker): TrackedWorker {
  return {
    record,
    busy: false,
    idleSince: null,
    served: false,
    strikes: 0,
    unhealthy: null,
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

/** It takes work, or will soon. */
export function isActive({ record }: Pick<TrackedWorker, 'record'>): boolean {
  return record.state === 'ready' || record.state === 'starting';
}
