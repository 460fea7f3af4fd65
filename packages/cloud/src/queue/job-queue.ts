import {
  isPastRetention,
  type JobCounts,
  type JobFilter,
  type TakenJob,
  type WorkerHeartbeat,
} from '../domain/job-records.ts';
import type {
  Delivery,
  Job,
  JobChange,
  JobOutcome,
  JobOutline,
  JobWithPayloads,
} from '../domain/job-records.ts';
import type { JobChangeResult, JobStore, SubmitResult } from '../store/job-store.ts';
import type { Wakeup, WakeupBus } from '../store/wakeup-bus.ts';
import { isBeyondClockSkew } from '../support/clock.ts';
import type { Clock } from '../support/clock.ts';
import { BerthError } from '../support/errors.ts';
import type { Log } from '../support/log.ts';
import { JobReaper } from './job-reaper.ts';
import type { CancelSignal } from '../support/cancel-signal.ts';
import { Dispatcher } from './dispatcher.ts';
import { JobSequence } from '../domain/job-ids.ts';
import { JobUpdater } from './job-updater.ts';
import { JobNotifier } from './job-notifier.ts';
import type { EndNotice } from './job-notifier.ts';
import { hasEnded } from '../domain/job-status.ts';
import { listJobs } from './job-listing.ts';
import { WorkerHeartbeats, WORKER_TIMEOUT_MS } from './worker-heartbeats.ts';
import { STORE_RETRY_MS, withStoreRetries } from './store-retry.ts';
import { pinToAttempt } from './attempt-holder.ts';
import { CancellationRegistry } from './cancellation-registry.ts';
import { JobStreams } from './job-streams.ts';
import { TakeAhead } from './take-ahead.ts';
import type { RequestCredentials } from './request-credentials.ts';
import { newJob } from './job-submission.ts';
import type { EndpointQueueSettings, JobOptions } from './job-submission.ts';
import * as transitions from '../domain/job-transitions.ts';
import type { LeaseHolder, AttemptResult } from '../domain/job-transitions.ts';
import { Waiters } from './waiters.ts';
import type { CloudEventBus } from '../domain/events.ts';
import type { JobTracing, TraceContext } from '../domain/tracing.ts';

/** A worker that asked to be replaced gets no jobs for this long; by then its engine has replaced it. */
const WORKER_PAUSE_MS = 15_000;
/**
 * A take of a paused worker is held this long: the worker must not poll in a hot loop, nor wait long for an
 * answer when it is told to stop.
 */
const PAUSED_POLL_MS = 1_500;
export interface JobQueueDeps {
  /** Whether an engine runs this worker, where that is known. */
  instanceRuns?(endpointId: string, workerId: string): Promise<boolean>;
  /** Whether this worker is known to have ended. A worker that no engine started is not known. */
  instanceEnded?(endpointId: string, workerId: string): Promise<boolean>;
  /** Whether one answer to job-take may carry several short jobs. Default: true. */
  takeAhead?: boolean;
  /**
   * Throws or rejects if the account may not queue this; undefined if it has no limit. What it resolves to is
   * called when the job is in the store, or not. Called for every job: it must be cheap.
   */
  admit?(accountId: string, request: string): Promise<() => void> | undefined;
  /** How long the jobs of an account are kept after their end, if it has a limit. Called for every job. */
  longestRetention?(accountId: string): number | undefined;
  /** Traces jobs; without it there are no traces. */
  tracing?: JobTracing;
  /** Seals the credentials in requests; without it they are stored as they came. */
  credentials?: RequestCredentials;
  store: JobStore;
  wakeups: WakeupBus;
  clock: Clock;
  log: Log;
  /** The delivery of a job's webhook, where it has one. */
  deliveryOf(job: Job, payloads: JobWithPayloads['payloads']): Delivery;
  events: CloudEventBus;
}

export interface SubmitRequest {
  endpoint: EndpointQueueSettings;
  accountId: string;
  /** The request body, unparsed. */
  request: string;
  options: JobOptions;
  idempotency?: { key: string; bodyHash: string };
  /** The span of the request, where requests are traced. */
  trace?: TraceContext;
}

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
  /** Waits of paused workers. */
  readonly #resting = new Waiters<string>();
  readonly #dispatcher: Dispatcher;
  readonly #changes: JobUpdater;
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
      returnTaken: (endpointId, taken) => this.giveBack(endpointId, taken),
    });
    this.#changes = new JobUpdater({
      store: deps.store,
      clock: deps.clock,
      deliveryOf: deps.deliveryOf,
      onChanged: (changed, change) => this.#afterChange(changed, change),
    });
    this.streams = new JobStreams({
      store: deps.store,
      onWorkerActivity: (endpointId, workerId, seq) =>
        this.heartbeats.recordJobActivity(endpointId, workerId, seq),
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
    return this.#offer(this.#numbers.next(), request).then(
      (stored) => this.#settled(request, stored) ?? this.submit(request),
    );
  }

  /**
   * Submits for a caller who waits for the end. The wait starts before the job can be seen by anyone, so the
   * end cannot be missed.
   */
  async submitAndWait(
    request: SubmitRequest,
    milliseconds: number,
    signal: CancelSignal,
  ): Promise<{ job: Job; outcome: JobOutcome | undefined }> {
    const endpointId = request.endpoint.id;
    for (;;) {
      const seq = this.#numbers.next();
      const ended = this.#notifier.endWaiters.wait(endpointId, seq, milliseconds, signal);
      let job: Job | undefined;
      try {
        job = this.#settled(request, await this.#offer(seq, request));
      } finally {
        // Ends the wait where no job was created, or where the job has another number.
        if (job?.seq !== seq) this.#notifier.endWaiters.wake(endpointId, seq);
      }
      if (job !== undefined)
        return {
          job,
          outcome: await this.waitForEnd(endpointId, job.seq, milliseconds, signal, {
            job,
            ...(job.seq === seq && { ended }),
          }),
        };
    }
  }

  /** A job whose retention is over is not found, though its row may still exist. */
  async find(endpointId: string, seq: number): Promise<JobWithPayloads | undefined> {
    const found = await this.#deps.store.find(endpointId, seq);
    return found !== undefined && isPastRetention(found.job, this.#deps.clock.now()) ? undefined : found;
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
   * `submitted`: the job, where it was just submitted, and the wait for its end, where that was started
   * before.
   */
  async waitForEnd(
    endpointId: string,
    seq: number,
    milliseconds: number,
    signal: CancelSignal,
    submitted?: { job: Job; ended?: Promise<EndNotice | undefined> },
  ): Promise<JobOutcome | undefined> {
    // A monotonic clock: the wall clock may be set during the wait.
    const until = performance.now() + milliseconds;
    let ended = submitted?.ended;
    let mayHaveEnded = ended === undefined || this.#closed;
    let woken = false;
    let isTold = false;
    let last = submitted?.job;
    for (;;) {
      ended ??= this.#notifier.endWaiters.wait(
        endpointId,
        seq,
        Math.max(0, until - performance.now()),
        signal,
      );
      if (mayHaveEnded) {
        // A waiting caller gets the end, however short the retention is.
        const found = woken ? await this.#deps.store.find(endpointId, seq) : await this.find(endpointId, seq);
        if (found === undefined && last !== undefined) return isTold ? this.#outlived(last) : undefined;
        last = found?.job;
        if (
          found === undefined ||
          hasEnded(found.job) ||
          signal.aborted ||
          this.#closed ||
          performance.now() >= until
        )
          return found;
      }
      const notice = await ended;
      if (notice !== undefined && notice !== 'changed') return notice;
      isTold = notice === 'changed';
      ended = undefined;
      mayHaveEnded = true;
      woken = true;
    }
  }

  /**
   * The end of a job that is gone, from its last known state: another server ended it at its time to live. Only
   * where the waiter was told of this change. Otherwise the job may have ended in any way, and may have been
   * purged, while the news of it was lost.
   */
  #outlived(last: Job): JobOutcome | undefined {
    const now = this.#deps.clock.now();
    return hasEnded(last) || !transitions.isExpired(last, now)
      ? undefined
      : outcomeOf(transitions.expire(last, now));
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
   * The workers of an endpoint that any server has heard from recently, without those that have ended since.
   */
  async workers(endpointId: string): Promise<WorkerHeartbeat[]> {
    const here = this.heartbeats.liveWorkers(endpointId);
    const known = new Set(here.map(({ workerId }) => workerId));
    const now = this.#deps.clock.now();
    const elsewhere = await this.#deps.store.workers(endpointId, now - WORKER_TIMEOUT_MS);
    const heard = [
      ...here,
      ...elsewhere.filter(({ workerId, seenAt }) => !known.has(workerId) && !isBeyondClockSkew(seenAt, now)),
    ];
    const ended = await Promise.all(
      heard.map(async ({ workerId }) => (await this.#deps.instanceEnded?.(endpointId, workerId)) ?? false),
    );
    return heard.filter((_, index) => ended[index] === false);
  }

  async removeEndpoint(endpointId: string): Promise<void> {
    for (const { workerId, id, seq } of await this.#deps.store.listRunning(endpointId))
      this.#stop(endpointId, workerId, id, seq);
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
    if (!this.heartbeats.isPaused(endpointId, workerId))
      return this.#openRequests(
        endpointId,
        this.#dispatcher.waitForJobs(endpointId, workerId, room, milliseconds, signal),
      );
    if (this.#closed) return Promise.resolve([]);
    // A paused worker gets nothing, but its poll is held: an immediate answer would make it poll again
    // immediately.
    return this.#resting
      .wait(endpointId, workerId, Math.min(milliseconds, PAUSED_POLL_MS), signal)
      .then(() => []);
  }

  /** Only the worker sees the credentials of a request. It also gets the context of the trace. */
  async #openRequests(endpointId: string, taking: Promise<TakenJob[]>): Promise<TakenJob[]> {
    const { credentials, tracing } = this.#deps;
    const taken = await taking;
    if (credentials !== undefined)
      for (const job of taken) job.request = credentials.open(job.request, endpointId);
    if (tracing !== undefined) for (const one of taken) one.request = tracing.taken(one.job, one.request);
    return taken;
  }

  /** Returns jobs that were taken and did not reach their worker. */
  async giveBack(endpointId: string, taken: readonly TakenJob[]): Promise<void> {
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
    this.heartbeats.recordJobActivity(endpointId, holder.workerId, seq);
    await this.#changes.update(endpointId, seq, (job, _now, tried) =>
      transitions.progress(job, pinToAttempt(holder, tried), output),
    );
  }

  /** The worker asked to be replaced: it gets no more jobs, and its long polls end now. */
  pauseWorker(endpointId: string, workerId: string): void {
    this.heartbeats.pause(endpointId, workerId, WORKER_PAUSE_MS);
    this.endLongPolls(endpointId, workerId);
    this.#deps.events.publish('worker.refresh-requested', { endpointId, workerId, source: 'request' });
  }

  /** The worker asked to be replaced in the result of a job. */
  pauseWorkerAfterResult(endpointId: string, workerId: string): void {
    this.heartbeats.recordLastResult(endpointId, workerId);
    this.pauseWorker(endpointId, workerId);
  }

  /** The worker is being stopped: it gets no more jobs, and its long polls end now. */
  drainWorker(endpointId: string, workerId: string): void {
    this.heartbeats.drain(endpointId, workerId);
    this.endLongPolls(endpointId, workerId);
  }

  /** The backlog of an endpoint, for the scaler. */
  countWaiting(
    endpointId: string,
    queuedBefore: number,
    limit: number,
  ): Promise<{ waiting: number; late: number }> {
    return this.#deps.store.countWaiting(endpointId, queuedBefore, limit);
  }

  /** Ends the long polls of a worker. */
  endLongPolls(endpointId: string, workerId: string): void {
    this.#dispatcher.endPendingTakes(endpointId, workerId);
    this.cancellations.endLongPoll(endpointId, workerId);
  }

  /** The jobs that a worker must cancel; waits for the first one. */
  waitForCancellations(
    endpointId: string,
    workerId: string,
    milliseconds: number,
    signal: CancelSignal,
  ): Promise<string[]> {
    const longest = this.#closed
      ? 0
      : this.heartbeats.isPaused(endpointId, workerId)
        ? PAUSED_POLL_MS
        : milliseconds;
    return this.cancellations.waitForDue(endpointId, workerId, longest, signal);
  }

  /** The server stops: ends all waits. */
  close(): void {
    this.#closed = true;
    this.reaper.close();
    this.#dispatcher.close();
    this.#wakeEveryone();
  }

  // Internals.

  /** Stores a new job under this sequence number. */
  #offer(seq: number, submitted: SubmitRequest): Promise<SubmitResult> {
    const admission = this.#deps.admit?.(submitted.endpoint.accountId, submitted.request);
    return admission === undefined
      ? this.#store(seq, submitted)
      : admission.then((onStored) => this.#store(seq, submitted).finally(onStored));
  }

  #store(
    seq: number,
    { endpoint, accountId, request, options, idempotency, trace }: SubmitRequest,
  ): Promise<SubmitResult> {
    const { store, clock, tracing } = this.#deps;
    const annotated =
      tracing === undefined || trace === undefined ? request : tracing.annotate(request, trace);
    const stored = this.#deps.credentials?.seal(annotated, endpoint.id) ?? annotated;
    const whole = newJob(
      endpoint,
      accountId,
      stored,
      options,
      seq,
      clock.now(),
      this.#deps.longestRetention?.(endpoint.accountId),
    );
    return withStoreRetries(() => {
      const submitting = store.submit(
        whole,
        idempotency,
        options.sync !== undefined && idempotency === undefined,
      );
      if (store.sameTurnTakes) this.#dispatcher.wake(endpoint.id);
      return submitting;
    }, STORE_RETRY_MS.client);
  }

  /**
   * The stored job, or the earlier one with the same idempotency key. Undefined where another server used the
   * number for a job of its own.
   */
  #settled(
    { endpoint, idempotency }: SubmitRequest,
    { job, created, seenByTakes, bodyHash }: SubmitResult,
  ): Job | undefined {
    if (created) {
      if (!seenByTakes) {
        this.#deps.wakeups.publish({ kind: 'queue', endpointId: endpoint.id });
        this.#dispatcher.wake(endpoint.id);
      }
      this.#deps.events.publish('jobs.queued', { endpointId: endpoint.id });
      this.#deps.events.publish('job.changed', { job, from: undefined });
      return job;
    }
    if (bodyHash === null) return undefined;
    if (bodyHash !== idempotency?.bodyHash)
      throw new BerthError(
        'conflict',
        'this Idempotency-Key was used with another body; use a new key for a new request',
      );
    return job;
  }

  #afterChange({ before, after }: JobChangeResult, change: JobChange | undefined): void {
    const { endpointId, seq } = after;
    if (before.status === 'IN_PROGRESS' && after.status !== 'IN_PROGRESS') {
      this.heartbeats.unassignJob(endpointId, before.workerId, seq);
      if (after.status === 'CANCELLED' || after.status === 'TIMED_OUT')
        this.#stop(endpointId, before.workerId, before.id, seq);
    }
    if (before.status !== 'IN_QUEUE' && after.status === 'IN_QUEUE') {
      this.#deps.events.publish('jobs.queued', { endpointId });
      this.#dispatcher.wake(endpointId);
      this.#deps.wakeups.publish({ kind: 'queue', endpointId });
    }
    if (after.webhook !== null && hasEnded(after) && !hasEnded(before))
      this.#deps.events.publish('webhook.due', { endpointId });
    if (before.status === after.status) return;
    const leaseLost = change?.leaseLost;
    this.#deps.events.publish('job.changed', {
      job: after,
      from: before.status,
      ...(leaseLost && { leaseLost }),
    });
    if (hasEnded(after))
      this.#notifier.endWaiters.wake(endpointId, seq, (change && outcomeOf(change)) ?? 'changed');
    this.#notifier.notify(endpointId, seq);
  }

  #wakeEveryone(): void {
    for (const waiters of [this.#notifier, this.cancellations, this.#resting]) waiters.wakeAll();
  }

  #stop(endpointId: string, workerId: string | null, jobId: string, seq: number): void {
    if (workerId === null) return;
    this.heartbeats.unassignJob(endpointId, workerId, seq);
    this.cancellations.add(endpointId, workerId, jobId);
    this.#deps.wakeups.publish({ kind: 'stop', endpointId, workerId, jobId });
  }

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
        for (const waiters of [this.#notifier, this.#resting]) waiters.wakeAll();
        return;
      case 'forget':
      case 'pod':
      case 'worker':
      case 'volume':
      case 'quota':
      case 'rate':
      case 'refresh':
      case 'demand':
      case 'resigned':
        return;
    }
  }
}

/** The job's outcome without a read, where the change has both parts. */
function outcomeOf({ job, output, error }: JobChange): JobOutcome | undefined {
  return output === undefined || error === undefined ? undefined : { job, payloads: { output, error } };
}
