import type { Job } from '../domain/job-records.ts';
import { ChurnMap } from '../support/churn-map.ts';

/** Three missed pings: a worker that has been silent for this long is presumed dead. */
export const WORKER_TIMEOUT_MS = 30_000;

export type HeldJob = Pick<Job, 'seq' | 'id' | 'lease'>;

/** A job that a worker holds, and what its reports say about that. */
export interface HeldLease {
  jobId: string;
  seq: number;
  /** The lease of the attempt that this entry concerns. */
  lease: string;
  since: number;
  /** When it was taken, where it came together with others in one answer of the public protocol. */
  takenTogetherAt: number | null;
  /** The worker has reported the job. */
  confirmed: boolean;
  /** Since when the worker's reports contradict that it has the job. */
  missingSince: number | null;
}

/** What this server knows of a worker that has sent it a heartbeat. */
export interface ConnectedWorker {
  endpointId: string;
  workerId: string;
  seenAt: number;
  /** Its open requests. */
  openRequests: number;
  lastTakeAt: number;
  /** When its own loop last sent something. Pings may come from another process. */
  lastActiveAt: number;
  /** Gets no jobs before this time. */
  pausedUntil: number;
  unhealthy: string | null;
  /** It uses the channel. */
  accelerated: boolean;
  /** When it last opened the channel; 0 where it never did so here. */
  channelOpenedAt: number;
  /** It asked for several jobs at a time over the public protocol. */
  takesBatches: boolean;
  /** When it last posted a result over the public protocol. */
  lastResultAt: number;
  /** The highest concurrency that it reported; Infinity where it does not report it. */
  concurrency: number;
  /** In the order in which they were given to it. */
  jobs: ChurnMap<number, HeldLease>;
  /** When its first heartbeat came here. */
  connectedAt: number;
  /** When it was first given a job. */
  firstJobAt: number | null;
  flushed: boolean;
  /** When it was last stored while idle, and with which values. */
  flushedAt: number;
  flushedState: string;
}

export function newConnectedWorker(endpointId: string, workerId: string, now: number): ConnectedWorker {
  return {
    endpointId,
    workerId,
    seenAt: 0,
    openRequests: 0,
    lastTakeAt: 0,
    lastActiveAt: 0,
    pausedUntil: 0,
    unhealthy: null,
    accelerated: false,
    channelOpenedAt: 0,
    takesBatches: false,
    lastResultAt: 0,
    concurrency: Infinity,
    jobs: new ChurnMap(),
    connectedAt: now,
    firstJobAt: null,
    flushed: false,
    flushedAt: 0,
    flushedState: '',
  };
}

export function newHeldLease({ seq, id, lease }: HeldJob, since: number): HeldLease {
  return {
    jobId: id,
    seq,
    lease: lease ?? '',
    since,
    takenTogetherAt: null,
    confirmed: false,
    missingSince: null,
  };
}

/** The worker showed that it has the job. */
export function confirmLease(held: HeldLease): void {
  held.confirmed = true;
  held.missingSince = null;
}

/** A report of the worker contradicts that it has the job. */
export function doubtLease(held: HeldLease, now: number): void {
  held.missingSince ??= now;
}
