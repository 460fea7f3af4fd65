import type { CrewOptions, DrainOptions } from '../support/worker-pool.ts';
import type { Stage } from '../support/stage.ts';

/** A queue that every run finds full: as a copy of one that was filled once, or filled anew. */
export interface FilledQueue {
  name: string;
  /** Brings the queue up, full; how workers reach it. */
  open(stage: Stage): Promise<OpenQueue>;
}

export type OpenQueue = Omit<CrewOptions, 'workers'> & Pick<DrainOptions, 'ended'>;

export const CONCURRENCY = 100;
