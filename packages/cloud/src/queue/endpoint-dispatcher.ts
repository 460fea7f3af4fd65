import type { Job, TakenJob, Claim } from '../domain/job-records.ts';
import type { JobStore } from '../store/job-store.ts';
import type { Clock } from '../support/clock.ts';
import type { Log } from '../support/log.ts';
import { callAfter } from '../support/shared-timer.ts';
import type { CancelSignal } from '../support/cancel-signal.ts';
import { newLeaseToken } from '../domain/job-ids.ts';
import { withStoreRetries } from './store-retry.ts';
import { PendingTakes } from './pending-takes.ts';
import type { PendingTake } from './pending-takes.ts';
import * as transitions from '../domain/job-transitions.ts';

/** One commit carries at most this many takes of an endpoint. */
const MAX_TAKE_BATCH = 2_000;
/**
 * Workers may ask for far more than there is, and every claim has a cost. So the first take asks for a few
 * jobs, and as long as takes return all that they asked for, the next one asks for more.
 */
const MIN_TAKE_BATCH = 4;
const TAKE_BATCH_GROWTH = 8;
/**
 * After a take found the queue empty, new long polls wait this long before the next take: otherwise each of a
 * thousand would query the store. A wake serves them immediately.
 */
const EMPTY_QUEUE_MEMO_MS = 500;
/** Jobs that another transaction had locked are tried again after this time. */
const LOCKED_JOBS_RETRY_MS = 20;
/** The pause after a failed take. */
const FAILED_TAKE_RETRY_MS = 250;

export interface DispatcherDeps {
  store: Pick<JobStore, 'take' | 'hasWaiting' | 'listRunning'>;
  clock: Clock;
  log: Log;
  /** A job left the queue. */
  onTaken(job: Job): void;
  /** A worker holds these jobs now. */
  onDispatched(endpointId: string, workerId: string, jobs: readonly Job[]): void;
  /** Returns jobs that were taken and reached no worker. */
  returnTaken(endpointId: string, taken: readonly TakenJob[]): Promise<void>;
}

/** One pass that serves the pending takes. */
interface DispatchPass {
  /** Something changed meanwhile: another pass follows. */
  again: boolean;
  /** The change may be a new job. */
  mayHaveNewJobs: boolean;
}

/**
 * Remembers that a take found the queue empty. It expires after a while; the queue is then checked again if a
 * worker asked meanwhile.
 */
interface EmptyQueueMemo {
  isEmpty: boolean;
  wasAskedAgain: boolean;
}

/**
 * Dispatches the queued jobs of one endpoint to its waiting workers: one take from the store serves all of
 * them.
 */
export class EndpointDispatcher {
  readonly #deps: DispatcherDeps;
  readonly #endpointId: string;
  readonly #pendingTakes = new PendingTakes<TakenJob>();
  #pass: DispatchPass | undefined;
  /** How many jobs the next take asks for. */
  #batchSize = MIN_TAKE_BATCH;
  /** False while the last take found the queue empty, and nothing was said of new jobs since. */
  #mayHaveJobs = true;
  /** Set after a take that left the queue empty. */
  #emptyQueue: EmptyQueueMemo | undefined;

  constructor(deps: DispatcherDeps, endpointId: string) {
    this.#deps = deps;
    this.#endpointId = endpointId;
  }

  /**
   * Waits for up to `room` jobs. Resolves to none when the time is over, the request is aborted, or the wait
   * is released.
   */
  waitForJobs(
    workerId: string,
    room: number,
    milliseconds: number,
    signal: CancelSignal,
  ): Promise<TakenJob[]> {
    return new Promise((resolve) => {
      const end = (): void => {
        this.#pendingTakes.remove(pendingTake);
        pendingTake.resolve([]);
      };
      const notLater = callAfter(milliseconds, end);
      const pendingTake: PendingTake<TakenJob> = {
        workerId,
        room,
        resolve: (given) => {
          notLater();
          signal.removeEventListener('abort', end);
          resolve(given);
        },
      };
      signal.addEventListener('abort', end, { once: true });
      if (signal.aborted) return end();
      this.#pendingTakes.add(pendingTake);
      if (this.#emptyQueue?.isEmpty === true) this.#emptyQueue.wasAskedAgain = true;
      else this.#servePendingTakes();
    });
  }

  /** There may be new jobs. */
  wake(): void {
    this.#forgetEmptyQueue();
    this.#mayHaveJobs = true;
    if (this.#pass !== undefined) this.#pass.mayHaveNewJobs = true;
    this.#servePendingTakes();
  }

  /** Ends the matching waits without jobs. */
  endPendingTakes(picked: (workerId: string) => boolean): void {
    this.#pendingTakes.end((pendingTake) => picked(pendingTake.workerId));
  }

  /** Serves the pending takes, one pass at a time. A wake meanwhile adds another pass. */
  #servePendingTakes(): void {
    if (this.#pass !== undefined) {
      this.#pass.again = true;
      return;
    }
    if (this.#pendingTakes.size === 0) return;
    const pass: DispatchPass = { again: false, mayHaveNewJobs: false };
    this.#pass = pass;
    void this.#serve(pass).then((mayHaveMore) => {
      this.#pass = undefined;
      if (pass.again || mayHaveMore) this.#servePendingTakes();
    });
  }

  /** One take. Resolves to whether another one may find jobs. */
  async #serve(pass: DispatchPass): Promise<boolean> {
    const { store, clock, log, onTaken, onDispatched, returnTaken } = this.#deps;
    const endpointId = this.#endpointId;
    const owners = new Map<string, PendingTake<TakenJob>>();
    const claims = (): Claim[] =>
      this.#pendingTakes.roundRobin(this.#batchSize).map((pendingTake) => {
        const lease = newLeaseToken();
        owners.set(lease, pendingTake);
        return { workerId: pendingTake.workerId, lease };
      });
    let taken: TakenJob[];
    let passedOver = false;
    try {
      // Thousands of workers at rest poll: their takes would hold up the jobs of others.
      if (!this.#mayHaveJobs && store.hasWaiting !== undefined && !(await store.hasWaiting(endpointId))) {
        if (!pass.mayHaveNewJobs) this.#rememberEmptyQueue();
        return false;
      }
      this.#mayHaveJobs = false;
      taken = await store.take(endpointId, {
        ...transitions.takeRequest(claims, clock.now()),
        onLockedSkipped: () => (passedOver = true),
      });
    } catch (error) {
      log.warn({ err: error, endpointId }, 'jobs could not be handed out; trying again');
      this.#mayHaveJobs = true;
      await this.#tryReturn(this.#returnFailedTake(owners));
      await new Promise((resolve) => setTimeout(resolve, FAILED_TAKE_RETRY_MS));
      return true;
    }
    if (taken.length > 0 || passedOver) this.#mayHaveJobs = true;
    const isFull = taken.length > 0 && taken.length === owners.size;
    if (isFull) this.#forgetEmptyQueue();
    else if (passedOver) setTimeout(() => this.wake(), LOCKED_JOBS_RETRY_MS).unref();
    else if (owners.size > 0 && !pass.mayHaveNewJobs) this.#rememberEmptyQueue();
    this.#batchSize = Math.min(
      MAX_TAKE_BATCH,
      Math.max(MIN_TAKE_BATCH, taken.length * (isFull ? TAKE_BATCH_GROWTH : 2)),
    );
    const given = new Map<PendingTake<TakenJob>, TakenJob[]>();
    const stray: TakenJob[] = [];
    for (const job of taken) {
      // Its time to live ended before a sweep came. It is given to nobody: its lease is due, and the next
      // sweep ends it.
      if (transitions.isExpired(job.job, job.job.takenAt ?? 0)) continue;
      const owner = owners.get(job.job.lease ?? '');
      // A worker that left during the take gets none of its jobs.
      if (owner === undefined || !this.#pendingTakes.has(owner)) stray.push(job);
      else if (!given.get(owner)?.push(job)) given.set(owner, [job]);
      onTaken(job.job);
    }
    for (const [pendingTake, jobs] of given) {
      this.#pendingTakes.remove(pendingTake);
      onDispatched(
        endpointId,
        pendingTake.workerId,
        jobs.map(({ job }) => job),
      );
      pendingTake.resolve(jobs);
    }
    if (stray.length > 0) await this.#tryReturn(returnTaken(endpointId, stray));
    return isFull;
  }

  #rememberEmptyQueue(): void {
    if (this.#emptyQueue !== undefined) {
      this.#emptyQueue.isEmpty = true;
      return;
    }
    const memo: EmptyQueueMemo = { isEmpty: true, wasAskedAgain: false };
    this.#emptyQueue = memo;
    setTimeout(() => {
      this.#emptyQueue = undefined;
      if (memo.isEmpty && memo.wasAskedAgain) this.#servePendingTakes();
    }, EMPTY_QUEUE_MEMO_MS).unref();
  }

  #forgetEmptyQueue(): void {
    if (this.#emptyQueue !== undefined) this.#emptyQueue.isEmpty = false;
  }

  /** Jobs that cannot be returned now are found when their lease expires. */
  async #tryReturn(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      this.#deps.log.warn({ err: error }, 'jobs that reached no worker could not be put back yet');
    }
  }

  /** A take that failed may still have been committed: jobs with its leases are returned. */
  async #returnFailedTake(leases: ReadonlyMap<string, unknown>): Promise<void> {
    const { store, returnTaken } = this.#deps;
    if (leases.size === 0) return;
    const stray = (await withStoreRetries(() => store.listRunning(this.#endpointId))).filter(
      ({ lease }) => lease !== null && leases.has(lease),
    );
    await returnTaken(
      this.#endpointId,
      stray.map((job) => ({ job, request: '' })),
    );
  }
}
