import type { Job, WorkerHeartbeat } from '../domain/job-records.ts';
import type { JobStore } from '../store/job-store.ts';
import type { Clock } from '../support/clock.ts';
import { PairMap } from '../support/pair-map.ts';
import {
  confirmLease,
  doubtLease,
  newConnectedWorker,
  newHeldLease,
  WORKER_TIMEOUT_MS,
} from './connected-worker.ts';
import type { ConnectedWorker, HeldJob } from './connected-worker.ts';
import { HeartbeatFlush } from './heartbeat-flush.ts';

/** How long the evidence must last that a worker no longer has a job before the job counts as lost. */
const LOST_JOB_EVIDENCE_MS = 15_000;
/**
 * A report may have been sent before a job arrived at the worker: it does not show that the worker lacks a job
 * that was handed out this recently.
 */
const JOB_ARRIVES_MS = 1_000;

/** A job that its live worker evidently no longer has. */
interface LostJob {
  endpointId: string;
  workerId: string;
  seq: number;
  lease: string;
  /** The worker had reported the job. */
  wasConfirmed: boolean;
}

/**
 * The liveness of workers. A worker is alive as long as any of its requests arrive. A ping proves little: it
 * can outlive its worker, and it can be missing while the worker is busy. So a job counts as lost only on
 * evidence that is specific to it: the worker polled for work again, reports idle or leaves the job out of
 * its list, and this persists.
 */
export class WorkerHeartbeats {
  readonly #clock: Clock;
  readonly #workers = new PairMap<string, string, ConnectedWorker>();
  /** Since when this server listens: earlier reports of workers may have been missed. */
  #awakeSince: number;
  /** The clock's value at the last check. */
  #checkedAt: number;
  readonly #flush = new HeartbeatFlush(this.#workers);

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#awakeSince = clock.now();
    this.#checkedAt = this.#awakeSince;
  }

  /** The current time. */
  now(): number {
    return this.#clock.now();
  }

  /** A request of a worker arrived. Call the returned function when it ends. */
  requestStarted(endpointId: string, workerId: string): () => void {
    const worker = this.recordHeartbeat(endpointId, workerId);
    worker.openRequests += 1;
    return () => {
      worker.openRequests -= 1;
      worker.seenAt = this.#clock.now();
    };
  }

  recordHeartbeat(endpointId: string, workerId: string): ConnectedWorker {
    let worker = this.#workers.get(endpointId, workerId);
    if (worker === undefined) {
      worker = newConnectedWorker(endpointId, workerId, this.#clock.now());
      this.#workers.set(endpointId, workerId, worker);
    }
    worker.seenAt = this.#clock.now();
    worker.flushed = false;
    return worker;
  }

  /** It polls for work. `idle`: it reports that it runs nothing. */
  recordTake(endpointId: string, workerId: string, idle: boolean): void {
    const worker = this.recordHeartbeat(endpointId, workerId);
    worker.lastTakeAt = this.#clock.now();
    worker.lastActiveAt = worker.lastTakeAt;
    // A worker whose check failed exits; a poll with its id comes from a restarted one.
    worker.unhealthy = null;
    if (!idle) return;
    for (const held of worker.jobs.values())
      if (worker.lastTakeAt - held.since >= JOB_ARRIVES_MS) doubtLease(held, this.#clock.now());
  }

  /** It reports its concurrency. Running jobs continue where it shrinks, so the highest value counts. */
  recordConcurrency(endpointId: string, workerId: string, slots: number): void {
    const worker = this.recordHeartbeat(endpointId, workerId);
    worker.concurrency = worker.concurrency === Infinity ? slots : Math.max(worker.concurrency, slots);
  }

  /**
   * It asked for several jobs at a time over the public protocol: it may run more of them at a time than is
   * known.
   */
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
   * It posts the result of a job over the public protocol. Of jobs that it took together, each started when
   * the one before it ended. Undefined where the job is not known here.
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

  /** It opened the channel. */
  recordChannel(endpointId: string, workerId: string): void {
    const worker = this.recordHeartbeat(endpointId, workerId);
    worker.accelerated = true;
    worker.channelOpenedAt = this.#clock.now();
  }

  /**
   * The jobs that it cannot have started: it starts jobs in the order in which they arrive, up to its
   * concurrency.
   */
  unstartedJobs(endpointId: string, workerId: string): { seq: number; lease: string }[] {
    const worker = this.#workers.get(endpointId, workerId);
    return worker === undefined || worker.jobs.size <= worker.concurrency
      ? []
      : [...worker.jobs.values()].slice(worker.concurrency);
  }

  /** It lists its running jobs. A partial list proves nothing about the others. */
  recordRunningJobs(endpointId: string, workerId: string, jobIds: readonly string[], isWhole = true): void {
    const worker = this.recordHeartbeat(endpointId, workerId);
    const now = this.#clock.now();
    const listed = new Set(jobIds);
    for (const held of worker.jobs.values()) {
      // What was handed out over an earlier channel cannot arrive any more.
      const mayBeOnItsWay = held.since >= worker.channelOpenedAt && now - held.since < JOB_ARRIVES_MS;
      if (listed.has(held.jobId)) confirmLease(held);
      else if (isWhole && worker.lastTakeAt > held.since && !mayBeOnItsWay) doubtLease(held, now);
    }
  }

  /** It showed that it has this job, by a chunk or progress. `lease`: of which attempt, where it says so. */
  recordJobActivity(endpointId: string, workerId: string, seq: number, lease?: string): void {
    const worker = this.recordHeartbeat(endpointId, workerId);
    worker.lastActiveAt = this.#clock.now();
    const held = worker.jobs.get(seq);
    if (held !== undefined && (lease === undefined || held.lease === lease)) confirmLease(held);
  }

  /**
   * On its channel it ends an attempt. If it was given the job again since, what it listed may have been the
   * attempt that it ends here: whether the later one arrived is open.
   */
  recordAttemptEnd(endpointId: string, workerId: string, seq: number, lease: string): void {
    const held = this.#workers.get(endpointId, workerId)?.jobs.get(seq);
    if (held !== undefined && held.lease !== lease) held.confirmed = false;
  }

  /** It does not have this attempt any more. */
  unassignAttempt(endpointId: string, workerId: string, seq: number, lease: string): void {
    const jobs = this.#workers.get(endpointId, workerId)?.jobs;
    if (jobs?.get(seq)?.lease === lease) jobs.delete(seq);
  }

  /**
   * It was given jobs, just now or, after a restart, some time ago: from now on it has time to report them.
   */
  assignJobs(endpointId: string, workerId: string, ...jobs: readonly HeldJob[]): void {
    const worker = this.recordHeartbeat(endpointId, workerId);
    const now = this.#clock.now();
    for (const job of jobs) worker.jobs.set(job.seq, newHeldLease(job, now));
    worker.firstJobAt ??= now;
  }

  /**
   * The jobs that all workers hold, as the store said at `asOf`. For workers known here, adds jobs that they
   * got elsewhere and removes those that ended elsewhere.
   */
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
      for (const { since } of jobs.values()) worker.firstJobAt ??= since;
    });
  }

  unassignJob(endpointId: string, workerId: string | null, seq: number): void {
    if (workerId !== null) this.#workers.get(endpointId, workerId)?.jobs.delete(seq);
  }

  unhealthy(endpointId: string, workerId: string, reason: string): void {
    // PostgreSQL cannot store NUL in text.
    this.recordHeartbeat(endpointId, workerId).unhealthy = reason.replaceAll('\0', '');
  }

  /** No new jobs for a while: it asked to be replaced. */
  pause(endpointId: string, workerId: string, milliseconds: number): void {
    this.recordHeartbeat(endpointId, workerId).pausedUntil = this.#clock.now() + milliseconds;
  }

  /**
   * It asked to be replaced in the result of a job: it starts no other job in that one's place. Only on the
   * channel; a worker of the public protocol may start the jobs that it took before.
   */
  recordLastResult(endpointId: string, workerId: string): void {
    const worker = this.recordHeartbeat(endpointId, workerId);
    if (worker.accelerated && worker.concurrency !== Infinity)
      worker.concurrency = Math.max(0, worker.concurrency - 1);
  }

  isPaused(endpointId: string, workerId: string): boolean {
    return (this.#workers.get(endpointId, workerId)?.pausedUntil ?? 0) > this.#clock.now();
  }

  /** The state of a worker here; undefined before it was first heard from. */
  statusOf(
    endpointId: string,
    workerId: string,
  ):
    | {
        busy: number;
        worked: boolean;
        connectedAt: number;
        firstJobAt: number | null;
        unhealthy: string | null;
        accelerated: boolean;
      }
    | undefined {
    const worker = this.#workers.get(endpointId, workerId);
    return worker === undefined || worker.seenAt === 0
      ? undefined
      : {
          busy: worker.jobs.size,
          worked: worker.firstJobAt !== null,
          connectedAt: worker.connectedAt,
          firstJobAt: worker.firstJobAt,
          unhealthy: worker.unhealthy,
          accelerated: worker.accelerated,
        };
  }

  /** No new jobs ever: it is being stopped. */
  drain(endpointId: string, workerId: string): void {
    this.pause(endpointId, workerId, Infinity);
  }

  /** It has ended. */
  removeWorker(endpointId: string, workerId: string): void {
    this.#workers.delete(endpointId, workerId);
  }

  /**
   * This server itself was paused: what workers sent meanwhile is still unread, and they have time to report.
   */
  onProcessResumed(): void {
    this.#awakeSince = this.#clock.now();
  }

  /**
   * Called periodically: detects that the clock was set back. Earlier times would then lie in the future and
   * last until the clock has caught up. They are set to now, so that nothing lasts much longer than it would
   * have.
   */
  correctClockSetBack(): void {
    const now = this.#clock.now();
    const setBackBy = this.#checkedAt - now;
    this.#checkedAt = now;
    if (setBackBy <= 0) return;
    this.#awakeSince = Math.min(this.#awakeSince, now);
    this.#workers.forEach((worker) => {
      worker.seenAt = Math.min(worker.seenAt, now);
      worker.lastTakeAt = Math.min(worker.lastTakeAt, now);
      worker.lastActiveAt = Math.min(worker.lastActiveAt, now);
      worker.lastResultAt = Math.min(worker.lastResultAt, now);
      worker.channelOpenedAt = Math.min(worker.channelOpenedAt, now);
      worker.pausedUntil -= setBackBy;
      worker.flushed = false;
      for (const held of worker.jobs.values()) {
        held.since = Math.min(held.since, now);
        if (held.missingSince !== null) held.missingSince = Math.min(held.missingSince, now);
      }
    });
  }

  /** It restarted or came back. It reports itself whether it still wants to be replaced. */
  resume(endpointId: string, workerId: string): void {
    const worker = this.recordHeartbeat(endpointId, workerId);
    if (worker.pausedUntil !== Infinity) worker.pausedUntil = 0;
  }

  /** Undefined where this server has never heard from it: another one may have. */
  isAlive(endpointId: string, workerId: string): boolean | undefined {
    const now = this.#clock.now();
    const worker = this.#workers.get(endpointId, workerId);
    if (worker === undefined) return now - this.#awakeSince < WORKER_TIMEOUT_MS ? true : undefined;
    return worker.openRequests > 0 || now - Math.max(worker.seenAt, this.#awakeSince) < WORKER_TIMEOUT_MS;
  }

  /** It has no open request, and nothing was heard from it since. */
  isGoneSince(endpointId: string, workerId: string, since: number): boolean {
    const worker = this.#workers.get(endpointId, workerId);
    return worker === undefined || (worker.openRequests === 0 && worker.seenAt <= since);
  }

  /** When its own loop last polled for work or sent something about a job; 0 where it never did so here. */
  activeAt(endpointId: string, workerId: string): number {
    return this.#workers.get(endpointId, workerId)?.lastActiveAt ?? 0;
  }

  /** Whether it holds a job that was submitted before this one. */
  holdsEarlierJob(endpointId: string, workerId: string, seq: number): boolean {
    return [...(this.#workers.get(endpointId, workerId)?.jobs.keys() ?? [])].some((held) => held < seq);
  }

  /** Jobs that their live workers evidently no longer have. */
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

  /** Periodically stores heartbeats for the other servers; forgets workers that have been silent for long. */
  flush(store: Pick<JobStore, 'saveHeartbeats'>): Promise<void> {
    return this.#flush.run(store, this.#clock.now());
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
}
