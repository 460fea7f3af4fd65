/**
 * The words of the queue.
 *
 * **job**: one request on a queue endpoint. It is IN_QUEUE until a worker takes it, then
 * IN_PROGRESS, and ends once: COMPLETED, FAILED, CANCELLED or TIMED_OUT. What has ended stays
 * as it is until its retention is over; only FAILED and TIMED_OUT can be sent back by a retry.
 *
 * **attempt**: one try of a job. **lease**: a worker's hold on an attempt, with a token that
 * no other worker has. A result counts only from the holder of the lease: a worker that was
 * considered lost and comes back finds its lease gone, and its result changes nothing.
 *
 * **due**: the next deadline of a job: its time to live
 * ends, its lease must be checked, its execution time is over, its retention ends. A row says
 * when it must be checked, which is not later, and an index finds it: waiting jobs are not scanned.
 */
export const TERMINAL_STATUSES = ['COMPLETED', 'FAILED', 'CANCELLED', 'TIMED_OUT'] as const;
export const JOB_STATUSES = ['IN_QUEUE', 'IN_PROGRESS', ...TERMINAL_STATUSES] as const;
export type JobStatus = (typeof JOB_STATUSES)[number];
export type TerminalStatus = (typeof TERMINAL_STATUSES)[number];

/** A job without its payloads. Times are milliseconds since 1970, durations milliseconds. */
export interface Job {
  endpointId: string;
  /** Counts up with time; with the endpoint it names the job. */
  seq: number;
  /** What clients know it by. It carries `seq`. */
  id: string;
  /** Who submitted it. */
  accountId: string;
  status: JobStatus;
  /** Waits behind every job that is not. */
  lowPriority: boolean;
  /** Its place among those of its account: lower goes first. */
  position: number;
  createdAt: number;
  /** When it last entered the queue. */
  queuedAt: number;
  /** When it is forgotten, whatever its state. */
  ttlAt: number;
  /** From the policy, for a retry, which gets a new time to live. */
  ttl: number;
  /** How long one attempt may run; 0 is without limit. */
  executionTimeout: number;
  /** How long it is kept after its end. */
  retention: number;
  /** Automatic retries that are left to it when workers are lost. */
  retriesLeft: number;
  retries: number;
  webhook: string | null;
  attempt: number;
  /** The token of the lease; null while nobody holds it. */
  lease: string | null;
  workerId: string | null;
  takenAt: number | null;
  endedAt: number | null;
  /** How many chunks `/stream` has handed out. */
  drained: number;
  dueAt: number;
}

/** Its end was long enough ago: nobody sees it any more, though its row may still be there. */
export function isPastRetention(job: Pick<Job, 'status' | 'dueAt'>, now: number): boolean {
  return job.status !== 'IN_QUEUE' && job.status !== 'IN_PROGRESS' && job.dueAt <= now;
}

/** The payloads, as JSON text exactly as it came: numbers keep their digits. */
export interface Payloads {
  request: string;
  output: string | null;
  error: string | null;
}

export interface JobWithPayloads {
  job: Job;
  payloads: Payloads;
}

/** A job with what came of it; of one that has ended, the request may be left out. */
export interface JobOutcome {
  job: Job;
  payloads: Pick<Payloads, 'output' | 'error'> & { request?: string };
}

/** A job with the size of what is shown of it: the request before its end, the output and the error after. */
export interface JobOutline {
  job: Job;
  /** In bytes. */
  bytes: number;
  /** Undefined where it is too large to be read at once. */
  payloads: JobOutcome['payloads'] | undefined;
}

/** What becomes of a job: its next version and, where they change, its payloads. */
export interface JobChange {
  job: Job;
  output?: string | null;
  error?: string | null;
  /** Throws away what was streamed. */
  clearChunks?: true;
  /** Forgets the job altogether. */
  remove?: true;
  /** The worker that ran it was lost. */
  leaseLost?: true;
  /**
   * A webhook that has to go out, made in the same transaction: there is never an end without its delivery.
   */
  delivery?: (payloads: Payloads) => Delivery;
}

/** What the log of webhooks shows of one. */
export type DeliveryEntry = Omit<Delivery, 'body'>;

/** One webhook that has to reach its receiver, or has. */
export interface Delivery {
  id: string;
  endpointId: string;
  accountId: string;
  jobId: string;
  url: string;
  body: string;
  /** Attempts made so far. */
  attempts: number;
  /** When the next attempt is; null when there is none. */
  nextAt: number | null;
  state: 'pending' | 'delivered' | 'failed';
  lastStatus: number | null;
  lastError: string | null;
  createdAt: number;
  updatedAt: number;
}

export interface Idempotency {
  key: string;
  /** Tells the same body from another. */
  bodyHash: string;
}

export interface TakenJob {
  job: Job;
  request: string;
}

export interface Chunk {
  number: number;
  /** JSON text of the whole chunk. */
  text: string;
}

/** A chunk before it has a number. */
export interface NewChunk {
  text: string;
  /**
   * The number that the worker gave to what it is, or is a part of. Where it gave none, that of the chunk
   * before.
   */
  workerNumber: number;
}

/** How far a stream is, as its last chunk says: both are 0 where there is none. */
export interface ChunkPosition {
  number: number;
  workerNumber: number;
}

export interface JobFilter {
  status?: JobStatus;
  limit: number;
  offset: number;
}

/** Waiting and running are as of now, the others since the endpoint was made. */
export interface JobCounts {
  inQueue: number;
  inProgress: number;
  completed: number;
  failed: number;
  retried: number;
}

export interface WorkerHeartbeat {
  endpointId: string;
  workerId: string;
  seenAt: number;
  /** Jobs that it runs. */
  busy: number;
  /** Set where it reported that a check failed. */
  unhealthy: string | null;
  /** It speaks the fast worker channel. */
  accelerated: boolean;
}

export function positionAfter(end: ChunkPosition, added: readonly NewChunk[]): ChunkPosition {
  return { number: end.number + added.length, workerNumber: added.at(-1)?.workerNumber ?? end.workerNumber };
}

/** Who gets a job, and the token of the lease. */
export interface Claim {
  workerId: string;
  lease: string;
}

export interface TakeRequest {
  /** Asked for at the last moment: until then others may come and want jobs too. */
  claims(): readonly Claim[];
  takenAt: number;
  /**
   * The latest time to check a lease; earlier if the job's time to live or its execution
   * time is over before.
   */
  leaseCheckAt: number;
  /**
   * The rule. What it makes of a job agrees with the above: a store may have to write the lease before it
   * knows the job.
   */
  startAttempt(job: Job, claim: Claim): JobChange;
  /**
   * Called where waiting jobs were skipped because another transaction holds them; they may be available again
   * in a moment.
   */
  onLockedSkipped?(): void;
}
