import type { Database } from '../../../cloud/src/store/database.ts';
import type { DiskSync } from '../../../cloud/src/store/sqlite/wal-sync.ts';

/** One change of the row of a job, as it was committed. */
export interface JournalEntry {
  seq: number;
  id: string;
  endpointId: string;
  /** Null where the row is new. */
  before: string | null;
  /** Null where the row was deleted. */
  after: string | null;
  leaseBefore: string | null;
  workerBefore: string | null;
  /** Null where the row is new. */
  attemptBefore: number | null;
  attempt: number;
  ttl: number;
  executionTimeout: number;
  retention: number;
  output: string | null;
  error: string | null;
  webhook: string | null;
}

/** A row of the log of webhooks. */
export interface StoredDelivery {
  id: string;
  jobId: string;
  state: string;
  attempts: number;
}

export interface StoredPod {
  wanted: string;
  generation: number;
  settled: number;
}

/** What shall come to an end. */
export const UNFINISHED = `select 1 from workers where ended_at is null
  union all select 1 from pods where wanted <> 'terminated' or settled = 0
  union all select 1 from webhook_deliveries where next_at is not null limit 1`;

/** Owns everything in a run. */
export const ACCOUNT = 'account';
/** What an empty database needs. */
export const FIRST_ROWS = [
  `insert into accounts (id, name, ssh_keys, created_at) values ('${ACCOUNT}', 'simulated', '[]', 0)`,
  `insert into leadership (name, holder, epoch, expires_at) values ('leader', '', 0, 0)`,
];

/** A time that somebody pays for, as the ledger has it. */
export interface StoredInterval {
  unitId: string;
  beganAt: number;
  endedAt: number;
}

/** The database of a run, and what the checks read of it beside the servers. */
export interface SimulationStorage {
  readonly kind: 'sqlite' | 'postgres';
  /** A worker was written for the first time: these of its endpoint shall run now. */
  onWorker: (endpointId: string, active: readonly string[]) => void;
  /**
   * A worker of this endpoint, or a pod, was written while these servers held the leases, by their names; not on
   * PostgreSQL.
   */
  onInstanceWrite: (endpointId: string | null, holders: Readonly<Record<string, string>>) => void;
  /** Empties it for the next run. */
  clear(): Promise<void>;
  open(disk: DiskSync): Database;
  /** SQLite itself refuses what needs another page. */
  limitSize(isLimited: boolean): void;
  /** Resolves when no calls are under way any more that take real time; undefined where there are none. */
  whenIdle?(): Promise<void> | undefined;
  /** Reads what `takeJournal` answers, where that takes real time. */
  readJournal?(): Promise<void>;
  /** What was committed since the last time. */
  takeJournal(): JournalEntry[];
  /** Something that shall come to an end has not. */
  hasUnfinished(): Promise<boolean>;
  /** The log of webhooks. */
  deliveries(): Promise<StoredDelivery[]>;
  intervals(): Promise<StoredInterval[]>;
  /** All pods by id. */
  pods(): Promise<ReadonlyMap<string, StoredPod>>;
  /** One pod at this very moment, where that can be read in no time. */
  podNow?(id: string): StoredPod | undefined;
  close(): Promise<void>;
}
