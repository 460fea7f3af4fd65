import { isPastRetention } from '../domain/job-records.ts';
import type {
  Job,
  JobCounts,
  JobFilter,
  JobOutcome,
  JobOutline,
  JobWithPayloads,
  TakenJob,
  WorkerHeartbeat,
} from '../domain/job-records.ts';
import { JobSequence } from '../domain/job-ids.ts';
import * as transitions from '../domain/job-transitions.ts';
import type { LeaseHolder, AttemptResult } from '../domain/job-transitions.ts';
import type { JobChangeResult } from '../store/job-store.ts';
import type { Wakeup } from '../store/wakeup-bus.ts';
import type { CancelSignal } from '../support/cancel-signal.ts';
import { isBeyondClockSkew } from '../support/clock.ts';
import { pinToAttempt } from './attempt-holder.ts';
import { CancellationRegistry } from './cancellation-registry.ts';
import { Dispatcher } from './dispatcher.ts';
import { JobChangeEffects } from './job-change-effects.ts';
import { listJobs } from './job-listing.ts';
import { JobNotifier } from './job-notifier.ts';
import type { JobQueueDeps } from './job-queue-deps.ts';
import { JobReaper } from './job-reaper.ts';
import { JobStreams } from './job-streams.ts';
import { JobSubmitter } from './job-submitter.ts';
import type { SubmitRequest } from './job-submitter.ts';
import { JobUpdater } from './job-updater.ts';
import { JobWaits } from './job-waits.ts';
import { STORE_RETRY_MS } from './store-retry.ts';
import { TakeAhead } from './take-ahead.ts';
import { WORKER_TIMEOUT_MS } from './connected-worker.ts';
import { WorkerHeartbeats } from './worker-heartbeats.ts';
import { WorkerPolls } from './worker-polls.ts';

/** How the attempt of a lease ended. */
export interface FinishedAttempt {
  seq: number;
  lease: string;
  result: AttemptResult;
}

/**
 * The queue: accepts, dispatches and ends jobs. The state of jobs is in the store and nowhere else; this
 * holds only the waiters and the liveness of workers.
 */
export class JobQueue {
  readonly #deps: JobQueueDeps;
  readonly #numbers: JobSequence;
  readonly #notifier: JobNotifier;
  readonly #dispatcher: Dispatcher;
  readonly #changes: JobUpdater;
  readonly #effects: JobChangeEffects;
  readonly #submitter: JobSubmitter;
  readonly #waits: JobWaits;
  readonly #polls: WorkerPolls;
  #closed = false;
  readonly heartbeats: WorkerHeartbeats;
  readonly cancellations: CancellationRegistry;
  readonly takeAhead: TakeAhead;
  readonly streams: JobStreams;
  readonly reaper: JobReaper;

  constructor(deps: JobQueueDeps) {
    this.#deps = deps;
    this.#numbers = new JobSequence(deps.clock);
    this.#notifier = new JobNotifier(deps.wakeups);
    this.heartbeats = new WorkerHeartbeats(deps.clock);
    this.takeAhead = new TakeAhead(this.heartbeats, deps.takeAhead ?? true);
    this.cancellations = new CancellationRegistry(deps.clock, this.heartbeats);
    this.#dispatcher = new Dispatcher({
      store: deps.store,
      clock: deps.clock,
      log: deps.log,
      onTaken: (job) => {
        this.#notifier.changeWaiters.wake(job.endpointId, job.seq);
        deps.events.publish('job.changed', { job, from: 'IN_QUEUE' });
      },
      onDispatched: (endpointId, workerId, jobs) => {
        this.heartbeats.assignJobs(endpointId, workerId, ...jobs);
        // An earlier attempt may have been cancelled on the same worker; that does not concern this one.
        for (const { id } of jobs) this.cancellations.remove(endpointId, workerId, id);
      },
      returnTaken: (endpointId, taken) => this.returnTaken(endpointId, taken),
    });
    const { heartbeats, cancellations } = this;
    const [numbers, notifier, dispatcher] = [this.#numbers, this.#notifier, this.#dispatcher];
    this.#submitter = new JobSubmitter({ ...deps, numbers, dispatcher });
    this.#waits = new JobWaits({ ...deps, numbers, notifier, submitter: this.#submitter });
    this.#polls = new WorkerPolls({ ...deps, heartbeats, cancellations, dispatcher });
    this.#effects = new JobChangeEffects({ ...deps, heartbeats, cancellations, dispatcher, notifier });
    this.#changes = new JobUpdater({
      store: deps.store,
      clock: deps.clock,
      deliveryOf: deps.deliveryOf,
      onChanged: (changed, change) => this.#effects.apply(changed, change),
    });
    this.streams = new JobStreams({
      store: deps.store,
      onWorkerActivity: (endpointId, { workerId, lease }, seq) =>
        this.heartbeats.recordJobActivity(endpointId, workerId, seq, lease),
      onAppended: (endpointId, seq) => this.#notifier.notify(endpointId, seq),
    });
    this.reaper = new JobReaper({ ...deps, heartbeats: this.heartbeats, updater: this.#changes });
    deps.wakeups.subscribe((wakeup) => this.#onWakeup(wakeup));
  }

  /**
   * After a restart: sequence numbers continue, even when the clock was set back meanwhile. Workers keep
   * their jobs and have time to report them.
   */
  async recover(): Promise<void> {
    this.#numbers.resumeAfter(await this.#deps.store.highestSeq());
    for (const job of await this.#deps.store.listRunning()) {
      if (job.workerId !== null) this.heartbeats.assignJobs(job.endpointId, job.workerId, job);
    }
  }

  // Client operations.

  submit(request: SubmitRequest): Promise<Job> {
    return this.#submitter.submit(request);
  }

  /** Submits for a caller who waits for the end. */
  submitAndWait(
    request: SubmitRequest,
    milliseconds: number,
    signal: CancelSignal,
  ): Promise<{ job: Job; outcome: JobOutcome | undefined }> {
    return this.#waits.submitAndWait(request, milliseconds, signal);
  }

  /** A job whose retention is over is not found, though its row may still exist. */
  find(endpointId: string, seq: number): Promise<JobWithPayloads | undefined> {
    return this.#waits.find(endpointId, seq);
  }

  /** The same without what it carries, where that is larger than `maxBytes`. */
  async findOutline(endpointId: string, seq: number, maxBytes: number): Promise<JobOutline | undefined> {
    const found = await this.#deps.store.findOutline(endpointId, seq, maxBytes);
    return found !== undefined && isPastRetention(found.job, this.#deps.clock.now()) ? undefined : found;
  }

  /** The output of a job as UTF-8. */
  readOutput(endpointId: string, seq: number): Promise<Uint8Array | undefined> {
    return this.#deps.store.readOutput(endpointId, seq);
  }

  /**
   * Resolves with the current job when it has ended or is gone, the time is over, or the request is aborted.
   */
  waitForEnd(
    endpointId: string,
    seq: number,
    milliseconds: number,
    signal: CancelSignal,
  ): Promise<JobOutcome | undefined> {
    return this.#waits.waitForEnd(endpointId, seq, milliseconds, signal);
  }

  /** The server stops: ends all client waits. */
  get isClosing(): boolean {
    return this.#closed;
  }

  /** Resolves when the job changes, at the latest after the timeout. */
  async waitForChange(
    endpointId: string,
    seq: number,
    milliseconds: number,
    signal: CancelSignal,
  ): Promise<void> {
    await this.#notifier.changeWaiters.wait(endpointId, seq, milliseconds, signal);
  }

  async cancel(endpointId: string, seq: number): Promise<Job | undefined> {
    return (
      await this.#changes.update(
        endpointId,
        seq,
        (job, now) => transitions.cancel(job, now),
        STORE_RETRY_MS.client,
      )
    )?.after;
  }

  /** Undefined where there is no such job; `changed` is false where its state does not allow it. */
  async retry(endpointId: string, seq: number): Promise<JobChangeResult | undefined> {
    const position = this.#numbers.next();
    const done = await this.#changes.update(
      endpointId,
      seq,
      (job, now) => (job.position === position ? undefined : transitions.retry(job, position, now)),
      STORE_RETRY_MS.client,
    );
    // The new sequence number shows whether an attempt that seemed to fail was committed.
    return done?.after.position === position ? { ...done, changed: true } : done;
  }

  setTimeToLive(endpointId: string, seq: number, ttl: number): Promise<JobChangeResult | undefined> {
    return this.#changes.update(
      endpointId,
      seq,
      (job, now) => transitions.setTimeToLive(job, ttl, now),
      STORE_RETRY_MS.client,
    );
  }

  /** Removes queued jobs and wakes their synchronous callers. */
  async purge(endpointId: string): Promise<number> {
    const removed = await this.#deps.store.purge(endpointId);
    this.#notifier.notifyAll(endpointId);
    this.#deps.events.publish('jobs.changed', { endpointId });
    return removed;
  }

  /** Newest first, a page at a time. */
  list(endpointId: string, filter: JobFilter): AsyncGenerator<JobWithPayloads[]> {
    return listJobs(this.#deps, endpointId, filter);
  }

  /** A stored request as its client sent it, to submit it again. */
  openRequest(endpointId: string, request: string): string {
    return this.#deps.credentials?.open(request, endpointId) ?? request;
  }

  counts(endpointId: string): Promise<JobCounts> {
    return this.#deps.store.counts(endpointId);
  }

  countAhead(job: Job, limit: number): Promise<number> {
    return this.#deps.store.countAhead(job, limit);
  }

  /**
   * The workers of an endpoint with a recent heartbeat on any server, without those that have ended since.
   */
  async workers(endpointId: string): Promise<WorkerHeartbeat[]> {
    const here = this.heartbeats.liveWorkers(endpointId);
    const known = new Set(here.map(({ workerId }) => workerId));
    const now = this.#deps.clock.now();
    const elsewhere = await this.#deps.store.workers(endpointId, now - WORKER_TIMEOUT_MS);
    const recent = [
      ...here,
      ...elsewhere.filter(({ workerId, seenAt }) => !known.has(workerId) && !isBeyondClockSkew(seenAt, now)),
    ];
    const ended = await Promise.all(
      recent.map(async ({ workerId }) => (await this.#deps.instanceEnded?.(endpointId, workerId)) ?? false),
    );
    return recent.filter((_, index) => ended[index] === false);
  }

  async removeEndpoint(endpointId: string): Promise<void> {
    for (const { workerId, id, seq } of await this.#deps.store.listRunning(endpointId))
      this.#effects.cancelOnWorker(endpointId, workerId, id, seq);
    await this.#deps.store.removeEndpoint(endpointId);
    this.heartbeats.removeEndpoint(endpointId);
    this.takeAhead.removeEndpoint(endpointId);
    this.#dispatcher.removeEndpoint(endpointId);
    this.#notifier.notifyAll(endpointId);
  }

  // Worker operations.

  /**
   * Waits for up to `room` jobs. Resolves to none when the time is over, the request is aborted, or the
   * worker is paused.
   */
  take(
    endpointId: string,
    workerId: string,
    room: number,
    milliseconds: number,
    signal: CancelSignal,
  ): Promise<TakenJob[]> {
    return this.#polls.take(endpointId, workerId, room, milliseconds, signal);
  }

  /** The jobs that a worker must cancel; waits for the first one. */
  waitForCancellations(
    endpointId: string,
    workerId: string,
    milliseconds: number,
    signal: CancelSignal,
  ): Promise<string[]> {
    return this.#polls.waitForCancellations(endpointId, workerId, milliseconds, signal);
  }

  /** The worker asked to be replaced: it gets no more jobs, and its long polls end now. */
  pauseWorker(endpointId: string, workerId: string): void {
    this.#polls.pauseWorker(endpointId, workerId);
  }

  /** The worker asked to be replaced in the result of a job. */
  pauseWorkerAfterResult(endpointId: string, workerId: string): void {
    this.#polls.pauseWorkerAfterResult(endpointId, workerId);
  }

  /** The worker is being stopped: it gets no more jobs, and its long polls end now. */
  drainWorker(endpointId: string, workerId: string): void {
    this.#polls.drainWorker(endpointId, workerId);
  }

  /** Ends the long polls of a worker. */
  endLongPolls(endpointId: string, workerId: string): void {
    this.#polls.endLongPolls(endpointId, workerId);
  }

  /** Returns jobs that were taken and did not reach their worker. */
  async returnTaken(endpointId: string, taken: readonly TakenJob[]): Promise<void> {
    await Promise.all(
      taken.map(({ job }) =>
        this.returnToQueue(endpointId, job.seq, {
          workerId: job.workerId ?? '',
          lease: job.lease ?? undefined,
        }),
      ),
    );
  }

  /** Returns a job that its worker has not started, as if it had never been taken. */
  async returnToQueue(endpointId: string, seq: number, holder: LeaseHolder): Promise<void> {
    await this.#changes.update(endpointId, seq, (job, now) => transitions.returnToQueue(job, holder, now));
  }

  /** False where the worker does not hold the job (any more): then nothing changes. */
  async finish(
    endpointId: string,
    seq: number,
    holder: LeaseHolder,
    result: AttemptResult,
  ): Promise<boolean> {
    const done = await this.#changes.update(endpointId, seq, (job, now, tried) =>
      transitions.finish(job, pinToAttempt(holder, tried), result, now),
    );
    return done?.changed ?? false;
  }

  /** The results of one worker that came together. */
  finishAll(endpointId: string, workerId: string, endings: readonly FinishedAttempt[]): Promise<void> {
    return this.#changes.updateAll(
      endpointId,
      endings.map(({ seq, lease, result }) => ({
        seq,
        rule: (job, now) => transitions.finish(job, { workerId, lease }, result, now),
      })),
    );
  }

  async progress(endpointId: string, seq: number, holder: LeaseHolder, output: string): Promise<void> {
    this.heartbeats.recordJobActivity(endpointId, holder.workerId, seq, holder.lease);
    await this.#changes.update(endpointId, seq, (job, _now, tried) =>
      transitions.progress(job, pinToAttempt(holder, tried), output),
    );
  }

  /** The backlog of an endpoint, for the scaler. */
  countWaiting(
    endpointId: string,
    queuedBefore: number,
    limit: number,
  ): Promise<{ waiting: number; late: number }> {
    return this.#deps.store.countWaiting(endpointId, queuedBefore, limit);
  }

  /** The server stops: ends all waits. */
  close(): void {
    this.#closed = true;
    this.reaper.close();
    this.#dispatcher.close();
    this.#waits.close();
    this.#polls.close();
    for (const waiters of [this.#notifier, this.cancellations]) waiters.wakeAll();
  }

  // Internals.

  #onWakeup(wakeup: Wakeup): void {
    switch (wakeup.kind) {
      case 'queue':
        this.#deps.events.publish('jobs.queued', { endpointId: wakeup.endpointId });
        this.#deps.events.publish('jobs.changed', { endpointId: wakeup.endpointId });
        return this.#dispatcher.wake(wakeup.endpointId);
      case 'job':
        this.#deps.events.publish('jobs.changed', { endpointId: wakeup.endpointId });
        return this.#notifier.onRemoteChange(wakeup.endpointId, wakeup.seq);
      case 'stop':
        return this.cancellations.add(wakeup.endpointId, wakeup.workerId, wakeup.jobId);
      case 'missed':
        this.#dispatcher.wakeAll();
        // Cancellations are in memory: a poll for them would find nothing new and end early.
        this.#notifier.wakeAll();
        this.#polls.wakePaused();
        return;
      case 'forget':
      case 'pod':
      case 'worker':
      case 'volume':
      case 'quota-limit':
      case 'quota':
      case 'rate':
      case 'refresh':
      case 'demand':
      case 'resigned':
        return;
    }
  }
}
