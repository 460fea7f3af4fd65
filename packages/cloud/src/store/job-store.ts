import type { FoundJob, JobSearchFilter } from '../domain/job-search-query.ts';
import type {
  JobOutline,
  Delivery,
  DeliveryEntry,
  Job,
  JobChange,
  JobStatus,
  JobWithPayloads,
  TakenJob,
  Chunk,
  NewChunk,
  ChunkPosition,
  JobCounts,
  WorkerHeartbeat,
  Idempotency,
  TakeRequest,
} from '../domain/job-records.ts';

/**
 * What the queue asks of a store. Calls that arrive together are committed together, and a
 * call resolves only when the commit that holds its change is on disk. Three may resolve when it
 * is committed and before it is on disk: a take, a submission that is not acknowledged yet, and
 * the removal of jobs that nobody can read any more.
 * A power cut in between undoes only what was not acknowledged; a worker that has such a job finds
 * that its lease is gone. Rules come in as functions and run inside the transaction, on the job
 * as it is there.
 */
export interface JobStore {
  /**
   * Whether a take sees the jobs that were submitted in the same turn of the event loop. Where it does not,
   * take again after the commit.
   */
  readonly sameTurnTakes: boolean;
  /**
   * Adds a job. With an idempotency key that is taken, the job that has it is answered instead.
   * `unacknowledged`: the client hears nothing of it before its end.
   */
  submit(
    submitted: JobWithPayloads,
    idempotency?: Idempotency,
    unacknowledged?: boolean,
  ): Promise<SubmitResult>;
  /**
   * Hands out a job for each claim, as long as there are any: normal before low priority, accounts in turn,
   * each account's oldest first. The first job is for the first claim.
   */
  take(endpointId: string, terms: TakeRequest): Promise<TakenJob[]>;
  /** Whether a job waits. Stores in which a take costs no more than the question do not have it. */
  hasWaiting?(endpointId: string): Promise<boolean>;
  /**
   * Asks `next` what becomes of a job and writes it. Answers the job before and after; undefined where there
   * is none.
   */
  change(
    endpointId: string,
    seq: number,
    next: (job: Job) => JobChange | undefined,
  ): Promise<JobChangeResult | undefined>;
  /**
   * The same for several jobs, in this order. Where it fails, some of them may have been changed all the
   * same.
   */
  changeAll(requests: readonly JobChangeRequest[]): Promise<(JobChangeResult | undefined)[]>;
  find(endpointId: string, seq: number): Promise<JobWithPayloads | undefined>;
  /** What is shown of a job. What it carries is left out where it is larger than `maxBytes`. */
  findOutline(endpointId: string, seq: number, maxBytes: number): Promise<JobOutline | undefined>;
  /** The output of a job as UTF-8; undefined where it has none. */
  readOutput(endpointId: string, seq: number): Promise<Uint8Array | undefined>;
  /**
   * Appends the chunks that `next` returns for the current end of the stream. Resolves to the new end;
   * undefined where `next` refuses, or there is no such job.
   */
  appendChunks(
    endpointId: string,
    seq: number,
    next: (job: Job, end: ChunkPosition) => readonly NewChunk[] | undefined,
  ): Promise<ChunkPosition | undefined>;
  /** Chunks after number `after`, in order, together at most `bytes` large but at least one. */
  listChunks(endpointId: string, seq: number, after: number, bytes: number): Promise<Chunk[]>;
  /**
   * Jobs of any endpoint with a deadline that has passed, the longest due first. Ended jobs past their
   * retention are left to `deleteExpired`.
   */
  listDue(now: number, limit: number): Promise<Job[]>;
  /**
   * Removes jobs of any endpoint that have ended and whose retention is over, up to `limit`; answers how
   * many. No event is published, since nobody can read them any more.
   */
  deleteExpired(now: number, limit: number): Promise<number>;
  /** Removes every waiting job of an endpoint; answers how many. */
  purge(endpointId: string): Promise<number>;
  /**
   * The jobs of an endpoint, newest first, without their payloads, which may be large. Reads a bounded number
   * of rows, and says where the next call continues.
   */
  list(endpointId: string, query: JobListQuery): Promise<JobPage>;
  /** Jobs that match, newest first. Looks at a few rows of many, and says where the next search begins. */
  search(endpointId: string, query: JobSearchQuery): Promise<JobSearchPage>;
  /** Several jobs with all that they carry, newest first. Those that are gone are left out. */
  findAll(endpointId: string, seqs: readonly number[]): Promise<JobWithPayloads[]>;
  counts(endpointId: string): Promise<JobCounts>;
  /**
   * How many jobs of normal priority wait, and how many of them since before a time; each counted up to
   * `limit`.
   */
  countWaiting(
    endpointId: string,
    queuedBefore: number,
    limit: number,
  ): Promise<{ waiting: number; late: number }>;
  /** How many jobs wait in all queues of an account, or of all accounts. */
  queuedJobs(accountId?: string): Promise<number>;
  /** The endpoints with jobs that wait or run, the longest queue first. */
  queueDepths(limit: number): Promise<QueueDepth[]>;
  /** How large their requests are. Reads a row for each of them. */
  queuedBytes(accountId?: string): Promise<number>;
  /** About as many: from the oldest jobs of the longest queues. Its cost does not grow with the queues. */
  estimateQueuedBytes(accountId?: string): Promise<number>;
  /** How many waiting jobs are before this one, counted up to `limit`. */
  countAhead(job: Job, limit: number): Promise<number>;
  /** The jobs that workers hold, of one endpoint or of all. */
  listRunning(endpointId?: string): Promise<Job[]>;
  /** The highest number that a job has; 0 where there is none. */
  highestSeq(): Promise<number>;
  /** Everything of an endpoint. */
  removeEndpoint(endpointId: string): Promise<void>;

  /** Writes down which workers were seen, and when. */
  saveHeartbeats(listHeartbeats: WorkerHeartbeat[]): Promise<void>;
  workers(endpointId: string, seenSince: number): Promise<WorkerHeartbeat[]>;
  /** Forgets workers that were not seen since, and puts together what was counted apart. */
  compact(seenSince: number): Promise<void>;

  /**
   * Deliveries that wait for their next attempt, the longest due first, together at most `bytes` large but at
   * least one.
   */
  listDueDeliveries(now: number, limit: number, bytes: number): Promise<Delivery[]>;
  saveDelivery(delivery: Delivery): Promise<void>;
  /**
   * Writes `next` if the delivery is unchanged since it was read (due time and attempts); false where another
   * server was faster.
   */
  updateDelivery(
    seen: Pick<Delivery, 'id' | 'endpointId' | 'nextAt' | 'attempts'>,
    next: Delivery,
  ): Promise<boolean>;
  /** Forgets deliveries that came to their end before this time. */
  deleteEndedDeliveries(before: number): Promise<void>;
  /** The newest first. Without their bodies, which may be large. */
  listDeliveries(endpointId: string, filter: { jobId?: string; limit: number }): Promise<DeliveryEntry[]>;
  findDelivery(endpointId: string, id: string): Promise<Delivery | undefined>;
}

export interface SubmitResult {
  job: Job;
  created: boolean;
  /** Takes of the same batch have seen it, so no wake-up is needed. */
  seenByTakes: boolean;
  /** Of the job that holds the key, where it was not created. */
  bodyHash: string | null;
}

/** A job, and what becomes of it. */
export interface JobChangeRequest {
  readonly endpointId: string;
  readonly seq: number;
  next(job: Job): JobChange | undefined;
}

export interface JobChangeResult {
  before: Job;
  /** The same where the rule changed nothing. */
  after: Job;
  changed: boolean;
}

export interface JobListQuery {
  status?: JobStatus;
  /** Older than this one. */
  before?: number;
  /** How many rows are scanned, whatever their status: no index has it, since that would cost every job. */
  maxRowsScanned: number;
  /** Whoever is over by now is left out. */
  now: number;
}

export interface JobPage {
  /** By their numbers, with the size of what they carry in bytes. */
  jobs: { seq: number; bytes: number }[];
  /** Older ones are `before` this one; undefined where there are none. */
  next: number | undefined;
}

export interface JobSearchQuery extends Omit<JobSearchFilter, 'fingerprint'> {
  /** Older than this one. */
  before?: number;
  /** How many jobs are returned. */
  limit: number;
  /** How many rows are scanned. */
  maxRowsScanned: number;
  /** Jobs whose retention is over by now are left out. */
  now: number;
}

export interface JobSearchPage {
  jobs: FoundJob[];
  /** The search continues `before` this one; undefined where there are no older jobs. */
  next: number | undefined;
}

/** How the counts of an endpoint move when a job does. */
export interface CountDeltas {
  queued: number;
  running: number;
  completed: number;
  failed: number;
  retried: number;
}

/** What a change of one job does to the counts. A job that is gone counts nowhere as waiting or running. */
export function countDeltas(before: Job | undefined, after: Job | undefined): CountDeltas {
  const ended = (status: JobStatus): number =>
    after?.status === status && before?.status !== status ? 1 : 0;
  return {
    queued: at(after, 'IN_QUEUE') - at(before, 'IN_QUEUE'),
    running: at(after, 'IN_PROGRESS') - at(before, 'IN_PROGRESS'),
    completed: ended('COMPLETED'),
    failed: ended('FAILED') + ended('TIMED_OUT'),
    retried: after !== undefined && before !== undefined ? Math.max(0, after.retries - before.retries) : 0,
  };
}

/**
 * What a changed job counts as. One that ends and is deleted in one step still counts as ended; one that is
 * only deleted counts nowhere.
 */
export function countedAfter({ job, remove }: JobChange): Job | undefined {
  return remove === true && (job.status === 'IN_QUEUE' || job.status === 'IN_PROGRESS') ? undefined : job;
}

function at(job: Job | undefined, status: JobStatus): number {
  return job?.status === status ? 1 : 0;
}

export interface QueueDepth {
  endpointId: string;
  queued: number;
  running: number;
  /** When the first of the waiting jobs was queued; null where none waits. */
  oldestQueuedAt: number | null;
}
