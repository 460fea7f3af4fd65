import type { GroupCommit } from './group-commit.ts';
import type { JobCounters } from './job-counts.ts';
import type { Statements } from './statements.ts';

/** What the operations of the queue share. */
export interface QueueContext {
  statements: Statements;
  group: GroupCommit;
  counts: JobCounters;
}
