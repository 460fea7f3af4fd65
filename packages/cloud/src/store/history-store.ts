import type { Rollup } from '../domain/history/rollup.ts';

export type HistoryStep = 'minute' | 'hour';

export interface HistoryRow {
  /** Milliseconds since 1970. */
  start: number;
  data: Rollup;
}

export interface Sample {
  resourceId: string;
  /** The start of the minute. */
  minute: number;
  data: Rollup;
  /** Write no hourly row: there may be too many workers. */
  minuteOnly?: boolean;
}

/** What happened to endpoints and pods, by minute and by hour; to workers, by minute. */
export interface HistoryStore {
  /**
   * Moves what jobs did in minutes before this one to the rows of minutes and hours. Resolves to whether
   * there may be more.
   */
  foldJobs(before: number): Promise<boolean>;
  /** Adds what was measured. */
  addSamples(samples: readonly Sample[]): Promise<void>;
  /** The rows that start in [from, to), oldest first; with what is not folded yet. */
  read(resourceId: string, step: HistoryStep, from: number, to: number): Promise<HistoryRow[]>;
  /**
   * Deletes rows that start before these times, up to a limit; and of minutes the oldest over `maxMinutes`
   * rows.
   */
  trim(keep: { minutesFrom: number; hoursFrom: number; maxMinutes: number }): Promise<void>;
  /** Deletes everything of an endpoint or a pod. */
  remove(resourceId: string): Promise<void>;
  /** How many jobs wait and run now, for endpoints that have any. */
  queueDepths(): Promise<QueueDepth[]>;
}

export interface QueueDepth {
  endpointId: string;
  queued: number;
  running: number;
}
