import type { JobStatus } from '../../../cloud/src/domain/job-records.ts';

/**
 * What happened in a run, as those outside the server saw it. Times are milliseconds of the
 * machine's own monotonic clock, so that what several processes wrote down can be compared.
 * A call has a `from` and a `to`: whatever it did, it did between the two.
 */
export type HistoryEvent =
  | Submission
  | Execution
  | WorkerResult
  | StreamedChunk
  | Cancel
  | Retry
  | Purge
  | Deadline
  | Observation
  | StreamRead
  | InjectedFault;

/** One attempt to submit a job. `id` is null where no answer came: then the job may exist or not. */
export interface Submission {
  kind: 'submission';
  value: string;
  key: string | null;
  id: string | null;
  from: number;
  to: number;
}

/** A worker began a job. The marker names this one attempt. */
export interface Execution {
  kind: 'execution';
  id: string;
  value: string;
  marker: string;
  at: number;
}

/** A worker is about to post the result of an attempt. */
export interface WorkerResult {
  kind: 'result';
  id: string;
  marker: string;
  output: string | null;
  error: string | null;
  at: number;
}

/** A worker posted a chunk; `kept` where the server acknowledged it. */
export interface StreamedChunk {
  kind: 'chunk';
  id: string;
  marker: string;
  number: number;
  kept: boolean;
}

/** Its answer is written down as an observation. */
export interface Cancel {
  kind: 'cancel';
  id: string;
  from: number;
}

export interface Retry {
  kind: 'retry';
  id: string;
  outcome: 'accepted' | 'refused' | 'unknown';
  from: number;
  to: number;
}

export interface Purge {
  kind: 'purge';
  from: number;
}

/** From here on, time itself may end a job (`TIMED_OUT`) or forget it (`GONE`). */
export interface Deadline {
  kind: 'deadline';
  id: string;
  status: 'TIMED_OUT' | 'GONE';
  at: number;
}

/** A job as an answer showed it. A brief one carries no payloads. */
export interface Observation {
  kind: 'observation';
  id: string;
  status: JobStatus | 'GONE';
  output: string | null;
  error: string | null;
  brief: boolean;
  /** The unique value of its input, where the answer shows it. */
  value: string | null;
  from: number;
  to: number;
}

/** All that a stream gave after the end of its job, as markers and numbers of chunks. */
export interface StreamRead {
  kind: 'stream';
  id: string;
  chunks: { marker: string; number: number }[];
}

/** Something was broken on purpose: a server or a worker killed, a worker frozen, a store call failed. */
export interface InjectedFault {
  kind: 'disturbance';
  what: string;
  at: number;
}

/** The machine's monotonic clock: the same in every process. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint() / 1000n) / 1000;
}
