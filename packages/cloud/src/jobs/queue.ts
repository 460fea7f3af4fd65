import { isOver } from '../store/job-records.ts';
import type { Delivery, Job, JobChange, JobOutcome, WholeJob } from '../store/job-records.ts';
import type {
  Changed,
  JobCounts,
  JobFilter,
  JobStore,
  Submitted,
  TakenJob,
  WorkerRecord,
} from '../store/jobs.ts';
import type { Wakeup, Wakeups } from '../store/wakeups.ts';
import { isAhead } from '../support/clock.ts';
import type { Clock } from '../support/clock.ts';
import { BerthError } from '../support/errors.ts';
import type { Log } from '../support/log.ts';
import { Caretaker } from './caretaker.ts';
import type { Departure } from './departure.ts';
import { HandOut } from './hand-out.ts';
import { JobNumbers } from './identity.ts';
import { JobChanges } from './job-changes.ts';
import { JobNews } from './job-news.ts';
import { hasEnded } from './job.ts';
import { listJobs } from './listing.ts';
import { Presence, SILENT_MS } from './presence.ts';
import { PATIENCE, persist } from './persist.ts';
import { sameAttempt } from './same-attempt.ts';
import { StopList } from './stop-list.ts';
import { Streams } from './streams.ts';
import { newJob } from './submission.ts';
import type { QueueSettings, RequestTerms } from './submission.ts';
import * as transitions from './transitions.ts';
import type { Holder, Result } from './transitions.ts';
import { Waiters } from './waiters.ts';

/** A worker that asked to be replaced gets nothing for this long; by then whoever runs it has acted. */
const REST_MS = 15_000;
/** What a resting worker asks for is held this long: it shall neither spin nor, when it is told to end, wait for an answer that never comes. */
const RESTING_HOLD_MS = 1_500;
export interface QueueParts {
  /** Whether an engine runs this worker, where one is known to. */
  instanceRuns?(endpointId: string, workerId: string): Promise<boolean>;
  store: JobStore;
  wakeups: Wakeups;
  clock: Clock;
  log: Log;
  /** The delivery of a job's webhook, where it has one. */
  deliveryOf(job: Job, payloads: WholeJob['payloads']): Delivery;
  /** A webhook is due: tells whoever sends them. */
  onDelivery(): void;
}

export interface SubmitRequest {
  endpoint: QueueSettings;
  accountId: string;
  /** The body as it came. */
  request: string;
  terms: RequestTerms;
  idempotency?: { key: string; bodyHash: string };
}

/** How the attempt of a lease ended. */
export interface Ending {
  seq: number;
  lease: string;
  result: Result;
}

/**
 * The queue: accepts, hands out and ends jobs. What a job is lies in the store and nowhere
 * else; here is only who waits for what, and which workers were heard of.
 */
export class JobQueue {
  readonly #parts: QueueParts;
  readonly #numbers: JobNumbers;
  readonly #news: JobNews;
  /** Workers that rest. */
  readonly #resting = new Waiters<string>();
  readonly #handOut: HandOut;
  readonly #changes: JobChanges;
  #closed = false;
  readonly presence: Presence;
  readonly stops: StopList;
  readonly streams: Streams;
  readonly caretaker: Caretaker;
  /** Told when jobs wait on an endpoint. */
  onWaiting: (endpointId: string) => void = () => undefined;
  /** Told when a worker asks to be replaced. */
  onRefresh: (endpointId: string, workerId: string) => void = () => undefined;

  constructor(parts: QueueParts) {
    this.#parts = parts;
    this.#numbers = new JobNumbers(parts.clock);
    this.#news = new JobNews(parts.wakeups);
    this.presence = new Presence(parts.clock);
    this.stops = new StopList(parts.clock, this.presence);
    this.#handOut = new HandOut({
      store: parts.store,
      clock: parts.clock,
      log: parts.log,
      onTaken: ({ endpointId, seq }) => this.#news.changes.wake(endpointId, seq),
      onGiven: (endpointId, workerId, jobs) => {
        this.presence.given(endpointId, workerId, ...jobs);
        // An earlier attempt may have been stopped on the same worker: that is no word about this one.
        for (const { id } of jobs) this.stops.settle(endpointId, workerId, id);
      },
      giveBack: (endpointId, taken) => this.giveBack(endpointId, taken),
    });
    this.#changes = new JobChanges({
      store: parts.store,
      clock: parts.clock,
      deliveryOf: parts.deliveryOf,
      onChanged: (changed, change) => this.#afterChange(changed, change),
    });
    this.streams = new Streams({
      store: parts.store,
      onHeard: (endpointId, workerId, seq) => this.presence.showsJob(endpointId, workerId, seq),
      onGrown: (endpointId, seq) => this.#news.tell(endpointId, seq),
    });
    this.caretaker = new Caretaker({ ...parts, presence: this.presence, changes: this.#changes });
    parts.wakeups.listen((wakeup) => this.#onWakeup(wakeup));
  }

  /** After a restart: numbers go on where they were, also when the clock was set back meanwhile. What workers hold is theirs, and they have time to show themselves. */
  async recover(): Promise<void> {
    this.#numbers.countOn(await this.#parts.store.newest());
    for (const job of await this.#parts.store.running()) {
      if (job.workerId !== null) this.presence.given(job.endpointId, job.workerId, job);
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
    signal: Departure,
  ): Promise<{ job: Job; outcome: JobOutcome | undefined }> {
    const endpointId = request.endpoint.id;
    for (;;) {
      const seq = this.#numbers.next();
      const ended = this.#news.ends.wait(endpointId, seq, milliseconds, signal);
      let job: Job | undefined;
      try {
        job = this.#settled(request, await this.#offer(seq, request));
      } finally {
        // Nobody waits for a job that is none, or for another one than there was.
        if (job?.seq !== seq) this.#news.ends.wake(endpointId, seq);
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
  async find(endpointId: string, seq: number): Promise<WholeJob | undefined> {
    const found = await this.#parts.store.find(endpointId, seq);
    return found !== undefined && isOver(found.job, this.#parts.clock.now()) ? undefined : found;
  }

  /** Resolves when the job has ended or is gone, the time is over, or the caller gives up; with the job as it then is. `submitted`: the job, where it was just submitted, and its end, where it is listened for since before. */
  async waitForEnd(
    endpointId: string,
    seq: number,
    milliseconds: number,
    signal: Departure,
    submitted?: { job: Job; ended?: Promise<JobOutcome | undefined> },
  ): Promise<JobOutcome | undefined> {
    // Not by the clock, which may be set while somebody waits.
    const until = performance.now() + milliseconds;
    let ended = submitted?.ended;
    let mayHaveEnded = ended === undefined || this.#closed;
    let woken = false;
    let last = submitted?.job;
    for (;;) {
      ended ??= this.#news.ends.wait(endpointId, seq, Math.max(0, until - performance.now()), signal);
      if (mayHaveEnded) {
        // Whoever waited is told of an end, however short it is kept.
        const found = woken
          ? await this.#parts.store.find(endpointId, seq)
          : await this.find(endpointId, seq);
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
    const now = this.#parts.clock.now();
    return hasEnded(last) || !transitions.hasOutlived(last, now)
      ? undefined
      : outcomeOf(transitions.outlive(last, now));
  }

  /** The server stops: nobody waits any longer. */
  get stopping(): boolean {
    return this.#closed;
  }

  /** Resolves when something happens to the job, at the latest after the time. */
  async waitForChange(
    endpointId: string,
    seq: number,
    milliseconds: number,
    signal: Departure,
  ): Promise<void> {
    await this.#news.changes.wait(endpointId, seq, milliseconds, signal);
  }

  async cancel(endpointId: string, seq: number): Promise<Job | undefined> {
    return (
      await this.#changes.one(endpointId, seq, (job, now) => transitions.cancel(job, now), PATIENCE.client)
    )?.after;
  }

  /** Undefined where there is no such job; `changed` is false where its state does not allow it. */
  async retry(endpointId: string, seq: number): Promise<Changed | undefined> {
    const position = this.#numbers.next();
    const done = await this.#changes.one(
      endpointId,
      seq,
      (job, now) => (job.position === position ? undefined : transitions.retry(job, position, now)),
      PATIENCE.client,
    );
    // Its new place tells that a try which seemed to fail was kept.
    return done?.after.position === position ? { ...done, changed: true } : done;
  }

  setTimeToLive(endpointId: string, seq: number, ttl: number): Promise<Changed | undefined> {
    return this.#changes.one(
      endpointId,
      seq,
      (job, now) => transitions.setTimeToLive(job, ttl, now),
      PATIENCE.client,
    );
  }

  /** Removes what waits. Synchronous callers of those jobs are told. */
  async purge(endpointId: string): Promise<number> {
    const removed = await this.#parts.store.purge(endpointId);
    this.#news.tellAll(endpointId);
    return removed;
  }

  /** Newest first, a piece at a time. */
  list(endpointId: string, filter: JobFilter): AsyncGenerator<WholeJob[]> {
    return listJobs(this.#parts, endpointId, filter);
  }

  counts(endpointId: string): Promise<JobCounts> {
    return this.#parts.store.counts(endpointId);
  }

  ahead(job: Job, limit: number): Promise<number> {
    return this.#parts.store.ahead(job, limit);
  }

  /** The workers of an endpoint that any server has heard of lately. */
  async workers(endpointId: string): Promise<WorkerRecord[]> {
    const here = this.presence.here(endpointId);
    const known = new Set(here.map(({ workerId }) => workerId));
    const now = this.#parts.clock.now();
    const elsewhere = await this.#parts.store.workers(endpointId, now - SILENT_MS);
    return [
      ...here,
      ...elsewhere.filter(({ workerId, seenAt }) => !known.has(workerId) && !isAhead(seenAt, now)),
    ];
  }

  async removeEndpoint(endpointId: string): Promise<void> {
    for (const { workerId, id, seq } of await this.#parts.store.running(endpointId))
      this.#stop(endpointId, workerId, id, seq);
    await this.#parts.store.removeEndpoint(endpointId);
    this.presence.forgetEndpoint(endpointId);
    this.#handOut.forget(endpointId);
    this.#news.tellAll(endpointId);
  }

  // What workers do.

  /** Waits for up to `room` jobs. Answers none when the time is over, the worker gives up, or it shall rest. */
  take(
    endpointId: string,
    workerId: string,
    room: number,
    milliseconds: number,
    signal: Departure,
  ): Promise<TakenJob[]> {
    if (!this.presence.rests(endpointId, workerId))
      return this.#handOut.wait(endpointId, workerId, room, milliseconds, signal);
    if (this.#closed) return Promise.resolve([]);
    // A worker that rests waits for nothing, but it waits: an answer at once would make it ask again at once.
    return this.#resting
      .wait(endpointId, workerId, Math.min(milliseconds, RESTING_HOLD_MS), signal)
      .then(() => []);
  }

  /** Jobs that were taken and did not reach their worker. */
  async giveBack(endpointId: string, taken: readonly TakenJob[]): Promise<void> {
    await Promise.all(
      taken.map(({ job }) =>
        this.putBack(endpointId, job.seq, { workerId: job.workerId ?? '', lease: job.lease ?? undefined }),
      ),
    );
  }

  /** A job that its worker has not begun goes back as if it had never been taken. */
  async putBack(endpointId: string, seq: number, holder: Holder): Promise<void> {
    await this.#changes.one(endpointId, seq, (job, now) => transitions.giveBack(job, holder, now));
  }

  /** False where the worker does not hold the job, or no longer: then nothing changes. */
  async finish(endpointId: string, seq: number, holder: Holder, result: Result): Promise<boolean> {
    const done = await this.#changes.one(endpointId, seq, (job, now, tried) =>
      transitions.finish(job, sameAttempt(holder, tried), result, now),
    );
    return done?.changed ?? false;
  }

  /** The results of one worker that came together. */
  finishAll(endpointId: string, workerId: string, endings: readonly Ending[]): Promise<void> {
    return this.#changes.all(
      endpointId,
      endings.map(({ seq, lease, result }) => ({
        seq,
        rule: (job, now) => transitions.finish(job, { workerId, lease }, result, now),
      })),
    );
  }

  async progress(endpointId: string, seq: number, holder: Holder, output: string): Promise<void> {
    this.presence.showsJob(endpointId, holder.workerId, seq);
    await this.#changes.one(endpointId, seq, (job, _now, tried) =>
      transitions.progress(job, sameAttempt(holder, tried), output),
    );
  }

  /** The worker asked to be replaced: it gets no more jobs, and what it waits for ends now. */
  rest(endpointId: string, workerId: string): void {
    this.presence.rest(endpointId, workerId, REST_MS);
    this.release(endpointId, workerId);
    this.onRefresh(endpointId, workerId);
  }

  /** The worker is on its way out: it gets no more jobs, and what it waits for ends now. */
  dismiss(endpointId: string, workerId: string): void {
    this.presence.dismiss(endpointId, workerId);
    this.release(endpointId, workerId);
  }

  /** What waits on an endpoint, for whoever decides about workers. */
  waiting(
    endpointId: string,
    queuedBefore: number,
    limit: number,
  ): Promise<{ waiting: number; late: number }> {
    return this.#parts.store.waiting(endpointId, queuedBefore, limit);
  }

  /** Ends what a worker waits for. */
  release(endpointId: string, workerId: string): void {
    this.#handOut.release(endpointId, workerId);
    this.stops.release(endpointId, workerId);
  }

  /** The jobs that a worker shall stop, waiting for the first one. */
  jobsToStop(
    endpointId: string,
    workerId: string,
    milliseconds: number,
    signal: Departure,
  ): Promise<string[]> {
    const longest = this.#closed
      ? 0
      : this.presence.rests(endpointId, workerId)
        ? RESTING_HOLD_MS
        : milliseconds;
    return this.stops.wait(endpointId, workerId, longest, signal);
  }

  /** Lets everyone go who waits: the server stops. */
  close(): void {
    this.#closed = true;
    this.caretaker.close();
    this.#handOut.close();
    this.#wakeEveryone();
  }

  // How it works.

  /** Brings a new job into the store, under this number. */
  #offer(
    seq: number,
    { endpoint, accountId, request, terms, idempotency }: SubmitRequest,
  ): Promise<Submitted> {
    const { store, clock } = this.#parts;
    const whole = newJob(endpoint, accountId, request, terms, seq, clock.now());
    return persist(() => {
      const submitting = store.submit(
        whole,
        idempotency,
        terms.sync !== undefined && idempotency === undefined,
      );
      if (store.meets.at(endpoint.id)) this.#handOut.wake(endpoint.id);
      return submitting;
    }, PATIENCE.client);
  }

  /** The job that it became, or had been before. Undefined where another server gave the same number to a job of its own. */
  #settled(
    { endpoint, idempotency }: SubmitRequest,
    { job, created, met, bodyHash }: Submitted,
  ): Job | undefined {
    if (created) {
      if (!met) {
        this.#parts.wakeups.publish({ kind: 'queue', endpointId: endpoint.id });
        this.#handOut.wake(endpoint.id);
      }
      this.onWaiting(endpoint.id);
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

  #afterChange({ before, after }: Changed, change: JobChange | undefined): void {
    const { endpointId, seq } = after;
    if (before.status === 'IN_PROGRESS' && after.status !== 'IN_PROGRESS') {
      this.presence.released(endpointId, before.workerId, seq);
      if (after.status === 'CANCELLED' || after.status === 'TIMED_OUT')
        this.#stop(endpointId, before.workerId, before.id, seq);
    }
    if (before.status !== 'IN_QUEUE' && after.status === 'IN_QUEUE') {
      this.onWaiting(endpointId);
      this.#handOut.wake(endpointId);
      this.#parts.wakeups.publish({ kind: 'queue', endpointId });
    }
    if (after.webhook !== null && hasEnded(after) && !hasEnded(before)) this.#parts.onDelivery();
    if (before.status === after.status) return;
    if (hasEnded(after))
      this.#news.ends.wake(endpointId, seq, change === undefined ? undefined : outcomeOf(change));
    this.#news.tell(endpointId, seq);
  }

  #wakeEveryone(): void {
    for (const waiters of [this.#news, this.stops, this.#resting]) waiters.wakeAll();
  }

  #stop(endpointId: string, workerId: string | null, jobId: string, seq: number): void {
    if (workerId === null) return;
    this.presence.released(endpointId, workerId, seq);
    this.stops.add(endpointId, workerId, jobId);
    this.#parts.wakeups.publish({ kind: 'stop', endpointId, workerId, jobId });
  }

  #onWakeup(wakeup: Wakeup): void {
    switch (wakeup.kind) {
      case 'queue':
        this.onWaiting(wakeup.endpointId);
        return this.#handOut.wake(wakeup.endpointId);
      case 'job':
        return this.#news.hear(wakeup.endpointId, wakeup.seq);
      case 'stop':
        return this.stops.add(wakeup.endpointId, wakeup.workerId, wakeup.jobId);
      case 'missed':
        this.#handOut.wakeAll();
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
