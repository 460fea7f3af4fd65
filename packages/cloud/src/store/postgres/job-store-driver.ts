import type { Pool } from 'pg';
import type { JobStore } from '../job-store.ts';
import { NO_OBSERVER } from '../store-observer.ts';
import { changeJobs } from './change.ts';
import { jobChunks } from './chunks.ts';
import { jobDeliveries } from './deliveries.ts';
import { dueJobs } from './due.ts';
import { expireJobs } from './expire.ts';
import { HandedOutJobs } from './handed-out-jobs.ts';
import { workerHeartbeats } from './heartbeats.ts';
import { purgeJobs } from './purge.ts';
import type { QueueContext } from './queue-context.ts';
import { queuedUsage } from './queued-usage.ts';
import { readJobs } from './reads.ts';
import { removeEndpoint } from './remove-endpoint.ts';
import { searchJobs } from './search.ts';
import { Statements } from './statements.ts';
import { submitJobs } from './submit.ts';
import { takeJobs } from './take.ts';

/** The queue on PostgreSQL, one file for each operation. */
export function postgresJobStore(
  pool: Pool,
  queuePool: Pool,
  server: string,
  observer = NO_OBSERVER,
): JobStore {
  const context: QueueContext = {
    queue: new Statements(queuePool),
    queuePool,
    statements: new Statements(pool),
    pool,
    server,
    handedOut: new HandedOutJobs(),
    observer,
  };
  return {
    sameTurnTakes: false,
    ...submitJobs(context),
    ...takeJobs(context),
    ...changeJobs(context),
    ...jobChunks(context),
    ...dueJobs(context),
    ...expireJobs(context),
    ...purgeJobs(context),
    ...readJobs(context),
    ...searchJobs(context),
    ...queuedUsage(context),
    ...workerHeartbeats(context),
    ...jobDeliveries(context),
    ...removeEndpoint(context),
  };
}
