import type { Pool } from 'pg';
import type { StoreObserver } from '../store-observer.ts';
import type { HandedOutJobs } from './handed-out-jobs.ts';
import type { Statements } from './statements.ts';

/** What the operations of the queue share. */
export interface QueueContext {
  /** Statements that submit, take and change jobs: on connections with the planner settings of the queue. */
  queue: Statements;
  queuePool: Pool;
  /** All others, on any connection. */
  statements: Statements;
  pool: Pool;
  /** Names the rows of `job_counts` that this server writes. */
  server: string;
  handedOut: HandedOutJobs;
  observer: StoreObserver;
}
