import type { JobStore } from './job-store.ts';
import type { Dialect, Steps } from './sql.ts';
import type { LeaderElection } from './leader-election.ts';
import type { ShardElection } from './shard-election.ts';
import type { WakeupBus } from './wakeup-bus.ts';

/**
 * One database, whichever it is. The steps may run more than once, so they change nothing but the database.
 */
export interface Database {
  readonly dialect: Dialect;
  /** Identifies this process among those that use the database. */
  readonly server: string;
  /** Runs steps that only look. */
  read<T>(steps: () => Steps<T>): Promise<T>;
  /** Runs steps as one transaction. When the promise resolves, the change is on disk. */
  write<T>(steps: () => Steps<T>): Promise<T>;
  /** Rejects while writes are refused: the disk is full, or the server only reads. */
  checkWritable(): Promise<void>;
  /** The queue in the same database. The schema must be there. */
  jobs(): JobStore;
  /** Wakes the other servers on this database when something changes. */
  wakeups(): Promise<WakeupBus>;
  /**
   * Runs work under a lock that no other server holds at the same time. Within this server, the caller has to
   * prevent overlap.
   */
  exclusively<T>(name: string, work: () => Promise<T>): Promise<T>;
  /** `onResigned` wakes the other servers: there is no leader. The lease says into how many shards workers are divided. */
  leaderElection(onResigned: () => void, shards: number): LeaderElection;
  /** `onReleased` wakes the other servers: a shard is free. A database of one server has no shards. */
  shardElection?(shards: number, onReleased: () => void): ShardElection;
  /**
   * Writes a consistent copy of everything below a folder, while the database is used. Resolves to the
   * version of its schema.
   */
  copyTo(folder: string): Promise<number>;
  close(): Promise<void>;
}

/** A row with this unique value is there already. */
export class UniqueViolation extends Error {
  constructor(cause: unknown) {
    super('a row with this value exists', { cause });
    this.name = 'UniqueViolation';
  }
}
