import type { DatabaseSync } from 'node:sqlite';
import type { JobStore } from '../job-store.ts';
import { changeJobs } from './change.ts';
import { jobChunks } from './chunks.ts';
import { jobDeliveries } from './deliveries.ts';
import { dueJobs } from './due.ts';
import { expireJobs } from './expire.ts';
import type { GroupCommit } from './group-commit.ts';
import { workerHeartbeats } from './heartbeats.ts';
import { JobCounters } from './job-counts.ts';
import { purgeJobs } from './purge.ts';
import type { QueueContext } from './queue-context.ts';
import { queuedUsage } from './queued-usage.ts';
import { readJobs } from './reads.ts';
import { removeEndpoint } from './remove-endpoint.ts';
import { searchJobs } from './search.ts';
import { Statements } from './statements.ts';
import { submitJobs } from './submit.ts';
import { takeJobs } from './take.ts';

/**
 * The queue on SQLite, one file for each operation. Changes run in a group commit; reads run at once, between
 * two of them.
 */
export function sqliteJobStore(connection: DatabaseSync, group: GroupCommit): JobStore {
  const statements = new Statements(connection, group);
  const counts = new JobCounters(statements);
  group.hooks = { beforeCommit: () => counts.flush(), afterRollback: () => counts.discard() };
  const queue: QueueContext = { statements, group, counts };
  return {
    sameTurnTakes: true,
    ...submitJobs(queue),
    ...takeJobs(queue),
    ...changeJobs(queue),
    ...jobChunks(queue),
    ...dueJobs(queue),
    ...expireJobs(queue),
    ...purgeJobs(queue),
    ...readJobs(queue),
    ...searchJobs(queue),
    ...queuedUsage(queue),
    ...workerHeartbeats(queue),
    ...jobDeliveries(queue),
    ...removeEndpoint(queue),
  };
}
