import type { Job, WorkerHeartbeat } from '../domain/job-records.ts';
import type { JobStore } from '../store/job-store.ts';
import { isRecent } from '../support/clock.ts';
import type { Clock } from '../support/clock.ts';
import { PairMap } from '../support/pair-map.ts';
import { ChurnMap } from '../support/churn-map.ts';

/** Three missed pings: a worker that has said nothing for this long is taken for dead. */
export const WORKER_TIMEOUT_MS = 30_000;
/** How long evidence must stand that a worker no longer has a job before the job is given up. */
const LOST_JOB_EVIDENCE_MS = 15_000;
/** How often what was seen is written down for the other servers. */
const FLUSH_EVERY_MS = 5_000;
/** A worker that waits, and of which nothing changes, is written down less often: half as long as silence may last. */
const FLUSH_IDLE_EVERY_MS = 15_000;
/** A silent worker is of no use to anybody from here on. */
const FORGET_TIMED_OUT_MS = 2 * WORKER_TIMEOUT_MS;
/** One that was dismissed would get jobs again if it came back. Whoever ends it says so; where that never happens, it has ended by now. */
const FORGET_DRAINED_MS = 24 * 3_600_000;

type HeldJob = Pick<Job, 'seq' | 'id' | 'lease'>;

interface HeldLease {
  jobId: string;
  seq: number;
  /** Of the attempt that all this is about. */
  lease: string;
  since: number;
  /** When it was taken, where it came together with others in one answer of the public protocol. */
  takenTogetherAt: number | null;
  /** The worker has shown that it has the job. */
  confirmed: boolean;
  /** Since when the worker says things that do not fit with having it. */
  missingSince: number | null;
}

/** A job that its living worker evidently no longer has. */
interface LostJob {
  endpointId: string;
  workerId: string;
  seq: number;
  lease: string;
  /** The worker had shown that it has it. */
  wasConfirmed: boolean;
}

interface Worker {
  endpointId: string;
  workerId: string;
  seenAt: number;
  /** Requests of it that are open now. */
  openRequests: number;
  lastTakeAt: number;
  /** When its own loop last said something. Pings may come from another process. */
  lastActiveAt: number;
  /** Gets no job before this time. */
  pausedUntil: number;
  unhealthy: string | null;
  /** It speaks the fast worker channel. */
  accelerated: boolean;
  /** It asked for several jobs at a time over the public protocol. */
  takesBatches: boolean;
  /** When it last posted a result over the public protocol. */
  lastResultAt: number;
  /** The most jobs that it said it runs at a time; Infinity where it does not say. */
  concurrency: number;
  /** In the order in which they came to it. */
  jobs: ChurnMap<number, HeldLease>;
  /** A job came to it at some time. */
  hadJobs: boolean;
  flushed: boolean;
  /** When it was last written down while it waited, and how. */
  flushedAt: number;
  flushedState: string;
}

/**
 * Who works here. A worker is alive as long as anything is heard of it, by any of its
 * requests. A ping proves little: one can outlive its worker, and one can be missing while
 * the worker is busy. So a job is given up only on evidence that is specific to it: the worker
 * asked for work anew, says that it runs nothing or leaves the job out of its list, and sticks
 * to that.
 */
export class WorkerHeartbeats {
  readonly #clock: Clock;
  readonly #workers = new PairMap<string, string, Worker>();
  /** Since when this server listens: what workers said before may not have been heard. */
  #awakeSince: number;
  /** What the clock said when it was last looked at. */
  #lookedAt: number;
  #notedAt = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#awakeSince = clock.now();
    this.#lookedAt = this.#awakeSince;
  }

  /** The time that all this goes by. */
  now(): number {
    return this.#clock.now();
  }

  /** Anything was heard of a worker. Call the answer when its request ends. */
  requestStarted(endpointId: string, workerId: string): () => void {
    const worker = this.recordHeartbeat(endpointId, workerId);
    worker.openRequests += 1;
    return () => {
      worker.openRequests -= 1;
      worker.seenAt = this.#clock.now();
    };
  }

  recordHeartbeat(endpointId: string, workerId: string): Worker {
    let worker = this.#workers.get(endpointId, workerId);
    if (worker === undefined) {
      worker = {
        endpointId,
        workerId,
        seenAt: 0,
        openRequests: 0,
        lastTakeAt: 0,
        lastActiveAt: 0,
        pausedUntil: 0,
        unhealthy: null,
        accelerated: false,
        takesBatches: false,
        lastResultAt: 0,
        concurrency: Infinity,
        jobs: new ChurnMap(),
        hadJobs: false,
        flushed: false,
        flushedAt: 0,
        flushedState: '',
      };
      this.#workers.set(endpointId, workerId, worker);
    }
    worker.seenAt = this.#clock.now();
    worker.flushed = false;
    return worker;
  }

  /** It asks for work. `idle`: it says that it runs nothing. */
  recordTake(endpointId: string, workerId: string, idle: boolean): void {
    const worker = this.recordHeartbeat(endpointId, workerId);
    worker.lastTakeAt = this.#clock.now();
    worker.lastActiveAt = worker.lastTakeAt;
    // A worker whose check failed ends; whoever asks under its name has started anew.
    worker.unhealthy = null;
    if (idle) for (const held of worker.jobs.values()) this.#doubt(held);
  }

  /** It runs so many jobs at a time. What runs goes on where there are fewer places than before, so the most of them counts. */
  recordConcurrency(endpointId: string, workerId: string, places: number): void {
    const worker = this.recordHeartbeat(endpointId, workerId);
    worker.concurrency = worker.concurrency === Infinity ? places : Math.max(worker.concurrency, places);
  }

  /** It asked for several jobs at a time over the public protocol: it may run more of them at a time than is known. */
  recordBatchTake(endpointId: string, workerId: string): void {
    const worker = this.recordHeartbeat(endpointId, workerId);
    worker.takesBatches = true;
    if (!worker.accelerated) worker.concurrency = Infinity;
  }

  takesBatches(endpointId: string, workerId: string): boolean {
    return this.#workers.get(endpointId, workerId)?.takesBatches ?? false;
  }

  /** Jobs came to it in one answer of the public protocol: it runs them one after the other. */
  recordTakenTogether(
    endpointId: string,
    workerId: string,
    jobs: readonly Pick<Job, 'seq' | 'takenAt'>[],
  ): void {
    const worker = this.recordHeartbeat(endpointId, workerId);
    for (const { seq, takenAt } of jobs) {
      const held = worker.jobs.get(seq);
      if (held !== undefined) held.takenTogetherAt = takenAt;
    }
  }

  /**
   * It posts the result of a job over the public protocol. Of jobs that it took together, each started when the one
   * before it ended. Undefined where the job is not known here.
   */
  recordResult(
    endpointId: string,
    workerId: string,
    seq: number,
  ): { takenAt: number; startedAt: number; endedAt: number } | undefined {
    const worker = this.recordHeartbeat(endpointId, workerId);
    const held = worker.jobs.get(seq);
    const previousAt = worker.lastResultAt;
    const endedAt = this.#clock.now();
    worker.lastResultAt = endedAt;
    if (held === undefined || worker.takesBatches || worker.accelerated) return undefined;
    const takenAt = Math.min(endedAt, held.takenTogetherAt ?? held.since);
    const startedAt = held.takenTogetherAt === null ? takenAt : Math.max(takenAt, previousAt);
    return { takenAt, startedAt, endedAt };
  }

  /** It opened the fast worker channel. */
  recordChannel(endpointId: string, workerId: string): void {
    this.recordHeartbeat(endpointId, workerId).accelerated = true;
  }

  /** What it cannot have begun: it begins jobs in the order in which they come, as many at a time as it has places. */
  unstartedJobs(endpointId: string, workerId: string): { seq: number; lease: string }[] {
    const worker = this.#workers.get(endpointId, workerId);
    return worker === undefined || worker.jobs.size <= worker.concurrency
      ? []
      : [...worker.jobs.values()].slice(worker.concurrency);
  }

  /** It lists what it runs; where it runs more than fits, a part of that, which says nothing about the others. */
  recordRunningJobs(endpointId: string, workerId: string, jobIds: readonly string[], isWhole = true): void {
    const worker = this.recordHeartbeat(endpointId, workerId);
    const listed = new Set(jobIds);
    for (const held of worker.jobs.values()) {
      if (listed.has(held.jobId)) this.#trust(held);
      else if (isWhole && worker.lastTakeAt > held.since) this.#doubt(held);
    }
  }

  /** It showed that it has this job: a chunk, some progress. */
  recordJobActivity(endpointId: string, workerId: string, seq: number): void {
    const worker = this.recordHeartbeat(endpointId, workerId);
    worker.lastActiveAt = this.#clock.now();
    const held = worker.jobs.get(seq);
    if (held !== undefined) this.#trust(held);
  }

  /** It was given jobs, just now or, after a restart, some time ago: from now on it has time to show them. */
  assignJobs(endpointId: string, workerId: string, ...jobs: readonly HeldJob[]): void {
    const worker = this.recordHeartbeat(endpointId, workerId);
    const now = this.#clock.now();
    for (const job of jobs) worker.jobs.set(job.seq, newHeldLease(job, now));
    worker.hadJobs = true;
  }

  /** What all workers hold, as the store said at `asOf`. Of those that are known here, what came to them elsewhere is known from now on, and what has ended elsewhere is not. */
  syncWithStore(running: readonly Job[], asOf: number): void {
    const holdings = Map.groupBy(running, ({ endpointId, workerId }) => `${endpointId} ${workerId}`);
    this.#workers.forEach((worker) => {
      const { endpointId, workerId: id, jobs } = worker;
      if (jobs.size === 0 && holdings.size === 0) return;
      const holding = new Map(holdings.get(`${endpointId} ${id}`)?.map((job) => [job.seq, job]));
      for (const [seq, { since, lease }] of jobs)
        if (since < asOf && holding.get(seq)?.lease !== lease) jobs.delete(seq);
      for (const job of holding.values())
        if (!jobs.has(job.seq)) jobs.set(job.seq, newHeldLease(job, Math.min(job.takenAt ?? asOf, asOf)));
      if (jobs.size > 0) worker.hadJobs = true;
    });
  }

  unassignJob(endpointId: string, workerId: string | null, seq: number): void {
    if (workerId !== null) this.#workers.get(endpointId, workerId)?.jobs.delete(seq);
  }

  unhealthy(endpointId: string, workerId: string, reason: string): void {
    // PostgreSQL keeps no text with a NUL.
    this.recordHeartbeat(endpointId, workerId).unhealthy = reason.replaceAll('\0', '');
  }

  /** No new jobs for a while: it asked to be replaced. */
  pause(endpointId: string, workerId: string, milliseconds: number): void {
    this.recordHeartbeat(endpointId, workerId).pausedUntil = this.#clock.now() + milliseconds;
  }

  isPaused(endpointId: string, workerId: string): boolean {
    return (this.#workers.get(endpointId, workerId)?.pausedUntil ?? 0) > this.#clock.now();
  }

  /** What is known of a worker here; undefined before it was first heard of. */
  statusOf(
    endpointId: string,
    workerId: string,
  ): { busy: number; worked: boolean; unhealthy: string | null; accelerated: boolean } | undefined {
    const worker = this.#workers.get(endpointId, workerId);
    return worker === undefined || worker.seenAt === 0
      ? undefined
      : {
          busy: worker.jobs.size,
          worked: worker.hadJobs,
          unhealthy: worker.unhealthy,
          accelerated: worker.accelerated,
        };
  }

  /** No new jobs ever: it is on its way out. */
  drain(endpointId: string, workerId: string): void {
    this.pause(endpointId, workerId, Infinity);
  }

  /** It has ended. */
  removeWorker(endpointId: string, workerId: string): void {
    this.#workers.delete(endpointId, workerId);
  }

  /** This server itself was away for a while: what workers said meanwhile is still to be read, and they have time to show themselves. */
  onProcessResumed(): void {
    this.#awakeSince = this.#clock.now();
  }

  /**
   * To be called now and then: notices that the clock was set back. What was seen before would lie ahead, and
   * last until the clock has caught up. It counts as seen now, so that nothing lasts much longer than it would have.
   */
  correctClockSetBack(): void {
    const now = this.#clock.now();
    const setBackBy = this.#lookedAt - now;
    this.#lookedAt = now;
    if (setBackBy <= 0) return;
    this.#awakeSince = Math.min(this.#awakeSince, now);
    this.#workers.forEach((worker) => {
      worker.seenAt = Math.min(worker.seenAt, now);
      worker.lastTakeAt = Math.min(worker.lastTakeAt, now);
      worker.lastActiveAt = Math.min(worker.lastActiveAt, now);
      worker.lastResultAt = Math.min(worker.lastResultAt, now);
      worker.pausedUntil -= setBackBy;
      worker.flushed = false;
      for (const held of worker.jobs.values()) {
        held.since = Math.min(held.since, now);
        if (held.missingSince !== null) held.missingSince = Math.min(held.missingSince, now);
      }
    });
  }

  /** It has started anew, or come back. Whether it still wants to be replaced it says itself. */
  resume(endpointId: string, workerId: string): void {
    const worker = this.recordHeartbeat(endpointId, workerId);
    if (worker.pausedUntil !== Infinity) worker.pausedUntil = 0;
  }

  /** Undefined where this server has never heard of it: another one may have. */
  isAlive(endpointId: string, workerId: string): boolean | undefined {
    const now = this.#clock.now();
    const worker = this.#workers.get(endpointId, workerId);
    if (worker === undefined) return now - this.#awakeSince < WORKER_TIMEOUT_MS ? true : undefined;
    return worker.openRequests > 0 || now - Math.max(worker.seenAt, this.#awakeSince) < WORKER_TIMEOUT_MS;
  }

  /** Nothing of it is open, and nothing was heard of it since. */
  isGoneSince(endpointId: string, workerId: string, since: number): boolean {
    const worker = this.#workers.get(endpointId, workerId);
    return worker === undefined || (worker.openRequests === 0 && worker.seenAt <= since);
  }

  /** When its own loop last asked for work or sent something of a job; 0 where that was never heard here. */
  activeAt(endpointId: string, workerId: string): number {
    return this.#workers.get(endpointId, workerId)?.lastActiveAt ?? 0;
  }

  /** Whether it holds a job that was submitted before this one. */
  holdsEarlierJob(endpointId: string, workerId: string, seq: number): boolean {
    return [...(this.#workers.get(endpointId, workerId)?.jobs.keys() ?? [])].some((held) => held < seq);
  }

  /** Jobs that their living worker evidently no longer has. */
  lostJobs(): LostJob[] {
    const now = this.#clock.now();
    const lost: LostJob[] = [];
    this.#workers.forEach(({ endpointId, workerId, jobs }) => {
      if (jobs.size === 0) return;
      for (const { seq, lease, confirmed, missingSince } of jobs.values()) {
        if (missingSince !== null && now - Math.max(missingSince, this.#awakeSince) >= LOST_JOB_EVIDENCE_MS)
          lost.push({ endpointId, workerId, seq, lease, wasConfirmed: confirmed });
      }
    });
    return lost;
  }

  /** Tells the other servers who was seen, now and then; forgets who has not been for long. */
  async flush(store: Pick<JobStore, 'saveHeartbeats'>): Promise<void> {
    const now = this.#clock.now();
    if (isRecent(this.#notedAt, FLUSH_EVERY_MS, now)) return;
    this.#notedAt = now;
    const summary: { worker: Worker; asWaiting: string; record: WorkerHeartbeat }[] = [];
    for (const worker of this.#workers.values()) {
      if (worker.openRequests > 0) worker.seenAt = now;
      else if (now - worker.seenAt > forgetAfter(worker) && worker.jobs.size === 0)
        this.#workers.delete(worker.endpointId, worker.workerId);
      if (worker.flushed && worker.openRequests === 0) continue;
      const asWaiting = worker.openRequests > 0 ? `${worker.jobs.size} ${worker.unhealthy ?? ''}` : '';
      if (
        asWaiting !== '' &&
        asWaiting === worker.flushedState &&
        isRecent(worker.flushedAt, FLUSH_IDLE_EVERY_MS, now)
      )
        continue;
      // What is heard from here on is told the next time.
      worker.flushed = true;
      summary.push({
        worker,
        asWaiting,
        record: {
          endpointId: worker.endpointId,
          workerId: worker.workerId,
          seenAt: worker.seenAt,
          busy: worker.jobs.size,
          unhealthy: worker.unhealthy,
          accelerated: worker.accelerated,
        },
      });
    }
    if (summary.length === 0) return;
    try {
      await store.saveHeartbeats(summary.map(({ record }) => record));
    } catch (error) {
      for (const { worker } of summary) worker.flushed = false;
      throw error;
    }
    for (const { worker, asWaiting } of summary) {
      worker.flushedAt = now;
      worker.flushedState = asWaiting;
    }
  }

  /** The workers of an endpoint that are alive as far as this server knows. */
  liveWorkers(endpointId: string): WorkerHeartbeat[] {
    const now = this.#clock.now();
    return [...this.#workers.valuesOf(endpointId)]
      .filter((worker) => worker.openRequests > 0 || now - worker.seenAt < WORKER_TIMEOUT_MS)
      .map(({ workerId, seenAt, jobs, unhealthy, accelerated }) => ({
        endpointId,
        workerId,
        seenAt,
        busy: jobs.size,
        unhealthy,
        accelerated,
      }));
  }

  removeEndpoint(endpointId: string): void {
    this.#workers.deleteAll(endpointId);
  }

  #trust(held: HeldLease): void {
    held.confirmed = true;
    held.missingSince = null;
  }

  #doubt(held: HeldLease): void {
    held.missingSince ??= this.#clock.now();
  }
}

/** How long a worker is remembered that holds nothing and says nothing. */
function forgetAfter({ pausedUntil }: Worker): number {
  return pausedUntil === Infinity ? FORGET_DRAINED_MS : FORGET_TIMED_OUT_MS;
}

function newHeldLease({ seq, id, lease }: HeldJob, since: number): HeldLease {
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
