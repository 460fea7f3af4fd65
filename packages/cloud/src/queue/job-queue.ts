import {
  isPastRetention,
  type JobCounts,
  type JobFilter,
  type TakenJob,
  type WorkerHeartbeat,
} from '../domain/job-records.ts';
import type { Delivery, Job, JobChange, JobOutcome, JobWithPayloads } from '../domain/job-records.ts';
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
import { hasEnded } from '../domain/job-status.ts';
import { listJobs } from './job-listing.ts';
import { WorkerHeartbeats, WORKER_TIMEOUT_MS } from './worker-heartbeats.ts';
import { STORE_RETRY_MS, withStoreRetries } from './store-retry.ts';
import { pinToAttempt } from './attempt-holder.ts';
import { CancellationRegistry } from './cancellation-registry.ts';
import { JobStreams } from './job-streams.ts';
import { TakeAhead } from './take-ahead.ts';
import { newJob } from './job-submission.ts';
import type { EndpointQueueSettings, JobOptions } from './job-submission.ts';
import * as transitions from '../domain/job-transitions.ts';
import type { LeaseHolder, AttemptResult } from '../domain/job-transitions.ts';
import { Waiters } from './waiters.ts';
import type { CloudEventBus } from '../domain/events.ts';

/** A worker that asked to be replaced gets nothing for this long; by then whoever runs it has acted. */
const WORKER_PAUSE_MS = 15_000;
/** What a resting worker asks for is held this long: it shall neither spin nor, when it is told to end, wait for an answer that never comes. */
const PAUSED_POLL_MS = 1_500;
export interface JobQueueDeps {
  /** Whether an engine runs this worker, where one is known to. */
  instanceRuns?(endpointId: string, workerId: string): Promise<boolean>;
  /** Whether one answer to job-take may carry several short jobs. Default: true. */
  takeAhead?: boolean;
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
  /** The body as it came. */
  request: string;
  options: JobOptions;
  idempotency?: { key: string; bodyHash: string };
}

/** How the attempt of a lease ended. */
export interface FinishedAttempt {
  seq: number;
  lease: string;
  result: AttemptResult;
}

/**
 * The queue: accepts, hands out and ends jobs. What a job is lies in the store and nowhere
 * else; here is only who waits for what, and which workers were heard of.
 */
export class JobQueue {
  readonly #deps: JobQueueDeps;
  readonly #numbers: JobSequence;
  readonly #news: JobNotifier;
  /** Workers that rest. */
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
    this.#news = new JobNotifier(deps.wakeups);
    this.heartbeats = new WorkerHeartbeats(deps.clock);
    this.takeAhead = new TakeAhead(this.heartbeats, deps.takeAhead ?? true);
    this.cancellations = new CancellationRegistry(deps.clock, this.heartbeats);
    this.#dispatcher = new Dispatcher({
      store: deps.store,
      clock: deps.clock,
      log: deps.log,
      onTaken: ({ endpointId, seq }) => this.#news.changeWaiters.wake(endpointId, seq),
      onDispatched: (endpointId, workerId, jobs) => {
        this.heartbeats.assignJobs(endpointId, workerId, ...jobs);
        // An earlier attempt may have been stopped on the same worker: that is no word about this one.
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
      onAppended: (endpointId, seq) => this.#news.notify(endpointId, seq),
    });
    this.reaper = new JobReaper({ ...deps, heartbeats: this.heartbeats, updater: this.#changes });
    deps.wakeups.subscribe((wakeup) => this.#onWakeup(wakeup));
  }

  /** After a restart: numbers go on where they were, also when the clock was set back meanwhile. What workers hold is theirs, and they have time to show themselves. */
  async recover(): Promise<void> {
    this.#numbers.resumeAfter(await this.#deps.store.highestSeq());
    for (const job of await this.#deps.store.listRunning()) {
      if (job.workerId !== null) this.heartbeats.assignJobs(job.endpointId, job.workerId, job);
    }
  }

  // What clients do.

  async submit(request: SubmitRequest): Promise<Job> {
    for (;;) {
      const job = this.#settled(request, await this.#offer(this.#numbers.next(), request));
      if (job !== undefined) return job;
    }
  }

  /** For a caller who waits for the end. It is listened for before anybody can know of the job, so it cannot be missed. */
  async submitAndWait(
    request: SubmitRequest,
    milliseconds: number,
    signal: CancelSignal,
  ): Promise<{ job: Job; outcome: JobOutcome | undefined }> {
    const endpointId = request.endpoint.id;
    for (;;) {
      const seq = this.#numbers.next();
      const ended = this.#news.endWaiters.wait(endpointId, seq, milliseconds, signal);
      let job: Job | undefined;
      try {
        job = this.#settled(request, await this.#offer(seq, request));
      } finally {
        // Nobody waits for a job that is none, or for another one than there was.
        if (job?.seq !== seq) this.#news.endWaiters.wake(endpointId, seq);
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

  /** A job whose retention is over is not found, though its row may still be there. */
  async find(endpointId: string, seq: number): Promise<JobWithPayloads | undefined> {
    const found = await this.#deps.store.find(endpointId, seq);
    return found !== undefined && isPastRetention(found.job, this.#deps.clock.now()) ? undefined : found;
  }

  /** Resolves when the job has ended or is gone, the time is over, or the caller gives up; with the job as it then is. `submitted`: the job, where it was just submitted, and its end, where it is listened for since before. */
  async waitForEnd(
    endpointId: string,
    seq: number,
    milliseconds: number,
    signal: CancelSignal,
    submitted?: { job: Job; ended?: Promise<JobOutcome | undefined> },
  ): Promise<JobOutcome | undefined> {
    // Not by the clock, which may be set while somebody waits.
    const until = performance.now() + milliseconds;
    let ended = submitted?.ended;
    let mayHaveEnded = ended === undefined || this.#closed;
    let woken = false;
    let last = submitted?.job;
    for (;;) {
      ended ??= this.#news.endWaiters.wait(endpointId, seq, Math.max(0, until - performance.now()), signal);
      if (mayHaveEnded) {
        // Whoever waited is told of an end, however short it is kept.
        const found = woken ? await this.#deps.store.find(endpointId, seq) : await this.find(endpointId, seq);
        if (found === undefined && last !== undefined) return this.#outlived(last);
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
      const told = await ended;
      if (told !== undefined) return told;
      ended = undefined;
      mayHaveEnded = true;
      woken = true;
    }
  }

  /** What became of a job that is gone, as it was seen last: another server may have ended it with its time to live. */
  #outlived(last: Job): JobOutcome | undefined {
    const now = this.#deps.clock.now();
    return hasEnded(last) || !transitions.isExpired(last, now)
      ? undefined
      : outcomeOf(transitions.expire(last, now));
  }

  /** The server stops: nobody waits any longer. */
  get isClosing(): boolean {
    return this.#closed;
  }

  /** Resolves when something happens to the job, at the latest after the time. */
  async waitForChange(
    endpointId: string,
    seq: number,
    milliseconds: number,
    signal: CancelSignal,
  ): Promise<void> {
    await this.#news.changeWaiters.wait(endpointId, seq, milliseconds, signal);
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
    // Its new place tells that a try which seemed to fail was kept.
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

  /** Removes what waits. Synchronous callers of those jobs are told. */
  async purge(endpointId: string): Promise<number> {
    const removed = await this.#deps.store.purge(endpointId);
    this.#news.notifyAll(endpointId);
    return removed;
  }

  /** Newest first, a piece at a time. */
  list(endpointId: string, filter: JobFilter): AsyncGenerator<JobWithPayloads[]> {
    return listJobs(this.#deps, endpointId, filter);
  }

  counts(endpointId: string): Promise<JobCounts> {
    return this.#deps.store.counts(endpointId);
  }

  countAhead(job: Job, limit: number): Promise<number> {
    return this.#deps.store.countAhead(job, limit);
  }

  /** The workers of an endpoint that any server has heard of lately. */
  async workers(endpointId: string): Promise<WorkerHeartbeat[]> {
    const here = this.heartbeats.liveWorkers(endpointId);
    const known = new Set(here.map(({ workerId }) => workerId));
    const now = this.#deps.clock.now();
    const elsewhere = await this.#deps.store.workers(endpointId, now - WORKER_TIMEOUT_MS);
    return [
      ...here,
      ...elsewhere.filter(({ workerId, seenAt }) => !known.has(workerId) && !isBeyondClockSkew(seenAt, now)),
    ];
  }

  async removeEndpoint(endpointId: string): Promise<void> {
    for (const { workerId, id, seq } of await this.#deps.store.listRunning(endpointId))
      this.#stop(endpointId, workerId, id, seq);
    await this.#deps.store.removeEndpoint(endpointId);
    this.heartbeats.removeEndpoint(endpointId);
    this.takeAhead.removeEndpoint(endpointId);
    this.#dispatcher.removeEndpoint(endpointId);
    this.#news.notifyAll(endpointId);
  }

  // What workers do.

  /** Waits for up to `room` jobs. Answers none when the time is over, the worker gives up, or it shall rest. */
  take(
    endpointId: string,
    workerId: string,
    room: number,
    milliseconds: number,
    signal: CancelSignal,
  ): Promise<TakenJob[]> {
    if (!this.heartbeats.isPaused(endpointId, workerId))
      return this.#dispatcher.waitForJobs(endpointId, workerId, room, milliseconds, signal);
    if (this.#closed) return Promise.resolve([]);
    // A worker that rests waits for nothing, but it waits: an answer at once would make it ask again at once.
    return this.#resting
      .wait(endpointId, workerId, Math.min(milliseconds, PAUSED_POLL_MS), signal)
      .then(() => []);
  }

  /** Jobs that were taken and did not reach their worker. */
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

  /** A job that its worker has not begun goes back as if it had never been taken. */
  async returnToQueue(endpointId: string, seq: number, holder: LeaseHolder): Promise<void> {
    await this.#changes.update(endpointId, seq, (job, now) => transitions.returnToQueue(job, holder, now));
  }

  /** False where the worker does not hold the job, or no longer: then nothing changes. */
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

  /** The worker asked to be replaced: it gets no more jobs, and what it waits for ends now. */
  pauseWorker(endpointId: string, workerId: string): void {
    this.heartbeats.pause(endpointId, workerId, WORKER_PAUSE_MS);
    this.endLongPolls(endpointId, workerId);
    this.#deps.events.publish('worker.refresh-requested', { endpointId, workerId });
  }

  /** The worker is on its way out: it gets no more jobs, and what it waits for ends now. */
  drainWorker(endpointId: string, workerId: string): void {
    this.heartbeats.drain(endpointId, workerId);
    this.endLongPolls(endpointId, workerId);
  }

  /** What waits on an endpoint, for whoever decides about workers. */
  countWaiting(
    endpointId: string,
    queuedBefore: number,
    limit: number,
  ): Promise<{ waiting: number; late: number }> {
    return this.#deps.store.countWaiting(endpointId, queuedBefore, limit);
  }

  /** Ends what a worker waits for. */
  endLongPolls(endpointId: string, workerId: string): void {
    this.#dispatcher.endPendingTakes(endpointId, workerId);
    this.cancellations.endLongPoll(endpointId, workerId);
  }

  /** The jobs that a worker shall stop, waiting for the first one. */
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

  /** Lets everyone go who waits: the server stops. */
  close(): void {
    this.#closed = true;
    this.reaper.close();
    this.#dispatcher.close();
    this.#wakeEveryone();
  }

  // How it works.

  /** Brings a new job into the store, under this number. */
  #offer(
    seq: number,
    { endpoint, accountId, request, options, idempotency }: SubmitRequest,
  ): Promise<SubmitResult> {
    const { store, clock } = this.#deps;
    const whole = newJob(endpoint, accountId, request, options, seq, clock.now());
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

  /** The job that it became, or had been before. Undefined where another server gave the same number to a job of its own. */
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
    if (hasEnded(after))
      this.#news.endWaiters.wake(endpointId, seq, change === undefined ? undefined : outcomeOf(change));
    this.#news.notify(endpointId, seq);
  }

  #wakeEveryone(): void {
    for (const waiters of [this.#news, this.cancellations, this.#resting]) waiters.wakeAll();
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
        return this.#dispatcher.wake(wakeup.endpointId);
      case 'job':
        return this.#news.onRemoteChange(wakeup.endpointId, wakeup.seq);
      case 'stop':
        return this.cancellations.add(wakeup.endpointId, wakeup.workerId, wakeup.jobId);
      case 'missed':
        this.#dispatcher.wakeAll();
        return this.#wakeEveryone();
      case 'forget':
      case 'pod':
        return;
    }
  }
}

/** Known without a look, where the end brought both. */
function outcomeOf({ job, output, error }: JobChange): JobOutcome | undefined {
  return output === undefined || error === undefined ? undefined : { job, payloads: { output, error } };
}
