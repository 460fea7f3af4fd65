import type { WorkerGroupOptions, DrainOptions } from '../support/worker-pool.ts';
import type { CleanupScope } from '../support/cleanup-scope.ts';

/** A queue that every run finds full: as a copy of one that was filled once, or filled again. */
export interface FilledQueue {
  name: string;
  /** Brings the queue up, full; how workers reach it. */
  open(scope: CleanupScope): Promise<OpenQueue>;
}

export type OpenQueue = Omit<WorkerGroupOptions, 'workers'> & Pick<DrainOptions, 'ended'>;

export const CONCURRENCY = 100;
