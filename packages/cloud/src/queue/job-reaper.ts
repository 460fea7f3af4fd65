import type { Job } from '../domain/job-records.ts';
import type { JobStore } from '../store/job-store.ts';
import { isBeyondClockSkew, isRecent } from '../support/clock.ts';
import type { Clock } from '../support/clock.ts';
import type { JobUpdater } from './job-updater.ts';
import type { WorkerHeartbeats } from './worker-heartbeats.ts';
import { WORKER_TIMEOUT_MS } from './connected-worker.ts';
import * as transitions from '../domain/job-transitions.ts';

const COMPACT_EVERY_MS = 10 * 60_000;
/** Workers that have been silent for this long are forgotten. */
const FORGET_WORKERS_MS = 3_600_000;

export interface JobReaperDeps {
  store: Pick<
    JobStore,
    'listDue' | 'deleteExpired' | 'listRunning' | 'workers' | 'saveHeartbeats' | 'compact'
  >;
  clock: Clock;
  heartbeats: WorkerHeartbeats;
  updater: JobUpdater;
  /** Whether an engine runs this worker, where that is known. */
  instanceRuns?(endpointId: string, workerId: string): Promise<boolean>;
}

/** Ends or returns jobs whose time is over and jobs that lost their worker. */
export class JobReaper {
  readonly #deps: JobReaperDeps;
  #comparedAt = -Infinity;
  #compactedAt = -Infinity;
  #closed = false;

  constructor(deps: JobReaperDeps) {
    this.#deps = deps;
  }

  /** Handles every due job. Resolves to whether there may be more. */
  async sweepDue(limit = 500): Promise<boolean> {
    const { store, clock, heartbeats, updater } = this.#deps;
    heartbeats.correctClockSetBack();
    const forgotten = await store.deleteExpired(clock.now(), limit);
    const due = await store.listDue(clock.now(), limit);
    const checked = await Promise.all(
      due.map(async (job) => ({
        job,
        lives: job.status === 'IN_PROGRESS' ? await this.#workerLives(job) : true,
      })),
    );
    const lost = new Map(
      checked.filter(({ lives }) => !lives).map(({ job }) => [`${job.endpointId} ${job.workerId}`, job]),
    );
    for (const { endpointId, workerId } of lost.values())
      await this.#returnUnstarted(endpointId, workerId ?? '');
    await Promise.all(
      checked.map(({ job, lives }) =>
        updater.update(job.endpointId, job.seq, (current, now) => transitions.onDue(current, now, lives)),
      ),
    );
    return due.length >= limit || forgotten >= limit;
  }

  /** Handles jobs that their live worker evidently no longer holds. */
  async sweepLost(): Promise<void> {
    const { heartbeats, updater, store } = this.#deps;
    await Promise.all(
      heartbeats.lostJobs().map(async ({ endpointId, workerId, seq, lease, wasConfirmed }) => {
        const holder = { workerId, lease };
        await updater.update(endpointId, seq, (job, now) =>
          wasConfirmed
            ? transitions.failWithoutResult(job, holder, 'the worker ended the job without a result', now)
            : transitions.loseUnreported(
                job,
                holder,
                'the worker has neither the job nor a result of it: it did not get there, or the ' +
                  'result could not be sent',
                now,
              ),
        );
        // The job may be with this worker again by now.
        heartbeats.unassignAttempt(endpointId, workerId, seq, lease);
      }),
    );
    try {
      await heartbeats.flush(store);
    } finally {
      // A failure to store heartbeats does not stop the other steps.
      await this.#compareHeldJobs();
      await this.#compact();
    }
  }

  /** This server itself was paused for a while. */
  onProcessResumed(): void {
    this.#deps.heartbeats.onProcessResumed();
  }

  /** A worker is gone for certain: its jobs are returned now. */
  async workerGone(endpointId: string, workerId: string, reason: string): Promise<void> {
    const { store, updater } = this.#deps;
    await this.#returnUnstarted(endpointId, workerId);
    const held = (await store.listRunning(endpointId)).filter((job) => job.workerId === workerId);
    await Promise.all(
      held.map(({ seq, lease }) =>
        updater.update(endpointId, seq, (job, now) =>
          transitions.loseWorker(job, { workerId, lease: lease ?? undefined }, reason, now),
        ),
      ),
    );
  }

  /**
   * A worker disconnected from this server and did not come back: its jobs are returned, unless another
   * server has heard from it or its instance runs.
   */
  async workerLeft(endpointId: string, workerId: string, since: number, reason: string): Promise<void> {
    if (this.#closed || !this.#deps.heartbeats.isGoneSince(endpointId, workerId, since)) return;
    if (
      (await this.#showsLifeToOtherServer(endpointId, workerId, since + 1)) ||
      (await this.#instanceRuns(endpointId, workerId))
    )
      return;
    await this.workerGone(endpointId, workerId, reason);
  }

  /**
   * Whether no server has heard from the worker for so long that it is presumed dead, and it holds no job:
   * one that runs a job may be too busy to ping.
   */
  async isUnresponsive(endpointId: string, workerId: string): Promise<boolean> {
    if (await this.#showsLife(endpointId, workerId)) return false;
    return !(await this.#deps.store.listRunning(endpointId)).some((job) => job.workerId === workerId);
  }

  /** The server stops: its workers continue on other servers. */
  close(): void {
    this.#closed = true;
  }

  /**
   * Jobs that a lost worker cannot have started are returned: they did not kill the worker, so it costs them
   * no retry.
   */
  async #returnUnstarted(endpointId: string, workerId: string): Promise<void> {
    const { heartbeats, updater } = this.#deps;
    await Promise.all(
      heartbeats
        .unstartedJobs(endpointId, workerId)
        .map(({ seq, lease }) =>
          updater.update(endpointId, seq, (job, now) =>
            transitions.returnUnstarted(job, { workerId, lease }, now),
          ),
        ),
    );
  }

  /**
   * Periodically compares the jobs that workers hold according to the store with those known here. A worker
   * can get a job from another server, or by a take whose answer was lost: unless the job is known here,
   * nobody would notice that the worker does not have it.
   */
  async #compareHeldJobs(): Promise<void> {
    const { store, clock, heartbeats } = this.#deps;
    const asOf = clock.now();
    if (isRecent(this.#comparedAt, transitions.LEASE_MS, asOf)) return;
    this.#comparedAt = asOf;
    const running = await store.listRunning();
    heartbeats.syncWithStore(running, asOf);
    await this.#renewLeasesAfterClockStep(running.filter((job) => isBeyondAnyLease(job, asOf)));
  }

  /** Leases that were written before the clock was set back become due as soon as any other. */
  async #renewLeasesAfterClockStep(ahead: readonly Job[]): Promise<void> {
    const { updater } = this.#deps;
    await Promise.all(
      ahead.map(({ endpointId, seq, workerId, lease }) =>
        updater.update(endpointId, seq, (job, now) =>
          isBeyondAnyLease(job, now)
            ? transitions.renewLease(job, { workerId: workerId ?? '', lease: lease ?? undefined }, now)
            : undefined,
        ),
      ),
    );
  }

  /** Periodically deletes rows that are no longer needed. */
  async #compact(): Promise<void> {
    const { store, clock } = this.#deps;
    const now = clock.now();
    if (isRecent(this.#compactedAt, COMPACT_EVERY_MS, now)) return;
    this.#compactedAt = now;
    await store.compact(now - FORGET_WORKERS_MS);
  }

  async #workerLives({ endpointId, workerId }: Job): Promise<boolean> {
    return (
      (await this.#showsLife(endpointId, workerId ?? '')) || this.#instanceRuns(endpointId, workerId ?? '')
    );
  }

  /** By this server or another one. */
  async #showsLife(endpointId: string, workerId: string): Promise<boolean> {
    const { clock, heartbeats } = this.#deps;
    return (
      heartbeats.isAlive(endpointId, workerId) === true ||
      this.#showsLifeToOtherServer(endpointId, workerId, clock.now() - WORKER_TIMEOUT_MS)
    );
  }

  async #showsLifeToOtherServer(endpointId: string, workerId: string, since: number): Promise<boolean> {
    const { store, clock } = this.#deps;
    const seen = await store.workers(endpointId, since);
    return seen.some(
      (worker) => worker.workerId === workerId && !isBeyondClockSkew(worker.seenAt, clock.now()),
    );
  }

  /**
   * Silence alone proves nothing: a handler that never yields blocks everything else. Where its instance
   * runs, the worker is not lost.
   */
  async #instanceRuns(endpointId: string, workerId: string): Promise<boolean> {
    return (await this.#deps.instanceRuns?.(endpointId, workerId)) ?? false;
  }
}

/** No lease is due this late by a correct clock. */
function isBeyondAnyLease({ dueAt }: Job, now: number): boolean {
  return isBeyondClockSkew(dueAt, now + transitions.LEASE_MS);
}
