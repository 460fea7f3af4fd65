import type { CrewOptions, DrainOptions } from '../support/worker-pool.ts';
import type { Stage } from '../support/stage.ts';

/** A queue that is filled once; every run then starts from a copy of that state. */
export interface FilledQueue {
  name: string;
  /** Brings the queue up, full, on a copy; how workers reach it. */
  open(stage: Stage): Promise<OpenQueue>;
}

export type OpenQueue = Omit<CrewOptions, 'workers'> & Pick<DrainOptions, 'ended'>;

export const CONCURRENCY = 100;
