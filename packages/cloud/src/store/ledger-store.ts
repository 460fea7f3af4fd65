import type { NetworkVolume } from '../domain/records.ts';
import type { Pod } from '../domain/pods/pod-record.ts';
import type { Worker } from '../domain/endpoints/worker-record.ts';
import type {
  ResourceUsage,
  UsageChange,
  UsageInterval,
  RollupQuery,
  UsageRollup,
  UsageIntervalQuery,
  CurrentRates,
} from '../domain/usage-records.ts';

/**
 * The usage ledger.
 *
 * - A **unit** is one thing that is paid for: a pod, a worker, a network volume.
 * - A **use** is what a unit takes from an instant on: its hardware, its disk, and what both cost.
 * - A **usage interval** is a use with its beginning and, once settled, its end. A unit has one open
 *   interval at most; another use ends it and begins the next.
 * - Money is counted in whole numbers. A **rate** is in nano-dollars an hour; an **amount** is a
 *   rate times seconds, so one is the 3600th part of a nano-dollar. Sums of these are exact.
 *
 * Every interval is written in the transaction that writes the start, the end or the change of what
 * it is about. So a crash at any time neither loses use nor counts it twice.
 */
export interface LedgerStore {
  /** Writes down what units use from now on. What they use already changes nothing. */
  recordUsage(changes: readonly UsageChange[]): Promise<void>;
  /** The roll-ups of some kinds from an instant on, and the state before it. */
  rollups(query: RollupQuery): Promise<UsageRollup[]>;
  /** The intervals that touch a window, oldest first. */
  listIntervals(query: UsageIntervalQuery): Promise<UsageInterval[]>;
  /** What an account uses at this moment, by kind. */
  currentRates(accountId: string): Promise<CurrentRates[]>;
  /**
   * The prices of the open intervals, as a text that differs where they do; undefined before
   * the first time.
   */
  savedPrices(): Promise<string | undefined>;
  savePrices(text: string): Promise<void>;
  /** Every pod, worker and volume: what must be repriced when prices change. */
  listBillableUnits(): Promise<{ podIds: string[]; workerIds: string[]; volumeIds: string[] }>;
  /**
   * From an instant on, a worker or a volume pays what it costs now, if it is still there. The first time of
   * all, a worker pays from its start.
   */
  reprice(unit: { kind: 'worker' | 'volume'; id: string }, at: number, isFirst: boolean): Promise<void>;
}

/** What a record says about use. The store asks these in the transaction that writes the record. */
export interface UsageRules {
  /** What it uses as it is. */
  podUsage(podChanges: Pod): ResourceUsage | null;
  pod(before: Pod, after: Pod): UsageChange[];
  workerChanges(before: Worker | undefined, after: Worker): UsageChange[];
  workerUsage(worker: Worker): ResourceUsage;
  volumeChanges(after: NetworkVolume, at: number): UsageChange[];
}
