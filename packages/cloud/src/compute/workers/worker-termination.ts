import type { InstanceEngine } from '../../engines/engine.ts';
import type { JobQueue } from '../../queue/job-queue.ts';
import { withStoreRetries } from '../../queue/store-retry.ts';
import type { Clock } from '../../support/clock.ts';
import type { Log } from '../../support/log.ts';
import type { ReconcileQueue } from '../reconcile-queue.ts';
import { recordCrash, exitedCleanly, NO_CRASHES } from './crash-backoff.ts';
import type { TrackedWorker } from './tracked-worker.ts';
import type { WorkerRegistry } from './worker-registry.ts';
import { readCrashSummary } from '../crash-summary.ts';
import { MAX_REASON_LENGTH, STOP_GRACE_MS } from '../reconcile-settings.ts';
import type { Worker } from '../../domain/endpoints/worker-record.ts';

/** How often a draining worker is checked for unfinished work. */
const BUSY_POLL_MS = 100;

export interface WorkerTerminationDeps {
  registry: WorkerRegistry;
  /** An endpoint is reconciled when one of its workers has ended by itself. */
  reconcileQueue: ReconcileQueue;
  queue: JobQueue;
  engines: ReadonlyMap<string, InstanceEngine>;
  /** How many requests the gateway has in flight with a worker. */
  inFlight(endpointId: string, workerId: string): number;
  clock: Clock;
  log: Log;
}

/** How a worker ended. */
export interface WorkerExit {
  exitCode?: number | null;
  reason: string | null;
  /** When it ended, if not just now. */
  at?: number | undefined;
  /** Without a fault of its own: its machine was lost, or nobody saw how it ended. */
  disrupted?: boolean;
}

/**
 * Ends workers: drains those that are no longer needed, and records the end of those that exited by
 * themselves.
 */
export class WorkerTermination {
  readonly #deps: WorkerTerminationDeps;
  /** Terminations in progress. */
  readonly #pending = new Set<{ endpointId: string; workerId: string; done: Promise<void> }>();
  /** Workers that the store still has as active: that they leave, or have ended, is not stored yet. */
  readonly #unrecorded = new Set<TrackedWorker>();

  constructor(deps: WorkerTerminationDeps) {
    this.#deps = deps;
  }

  /**
   * Drains a worker: it gets no more jobs, its long polls end, and when it has finished its jobs and
   * requests it is stopped. If it is stuck with a cancelled job, its other jobs go back to the queue.
   */
  drain(worker: TrackedWorker, reason: string | null): Promise<void> {
    if (worker.record.state !== 'leaving' && worker.record.state !== 'ended')
      worker.draining = this.#drain(worker, reason);
    return worker.draining;
  }

  async #drain(worker: TrackedWorker, reason: string | null): Promise<void> {
    const { record } = worker;
    const { registry, reconcileQueue, queue, engines, log } = this.#deps;
    worker.record = { ...record, state: 'leaving' };
    worker.drainReason = reason;
    queue.drainWorker(record.endpointId, record.id);
    registry.changes.notify(record.endpointId);
    this.#unrecorded.add(worker);
    try {
      await registry.save(worker).finally(() => this.#unrecorded.delete(worker));
      reconcileQueue.enqueue(record.endpointId);
      while (
        registry.isTracked(worker) &&
        this.#isBusy(record) &&
        !queue.cancellations.isStuck(record.endpointId, record.id)
      )
        await new Promise((resolve) => setTimeout(resolve, BUSY_POLL_MS));
      if (!registry.isTracked(worker)) return;
      await engines.get(record.dataCenterId)?.stop(record.id, STOP_GRACE_MS);
      // Its engine may have reported the exit by now, which then was recorded.
      if (registry.isTracked(worker))
        await this.#track(
          worker,
          this.#terminate(
            worker,
            { reason },
            this.#isBusy(record) ? () => this.#loseJobs(record, reason) : undefined,
          ),
        );
    } catch (error) {
      log.warn({ err: error, workerId: record.id }, 'a worker could not be stopped; trying again');
      worker.record = { ...worker.record, state: record.state };
    }
  }

  /**
   * A worker's instance ended. If that was not expected, and not done to it, it counts as a crash, and the
   * next start waits longer.
   */
  handleExit(worker: TrackedWorker, ending: WorkerExit & { reason: string }): Promise<void> {
    return this.#track(worker, this.#handleExit(worker, ending));
  }

  async #handleExit(
    worker: TrackedWorker,
    { exitCode = null, reason, at, disrupted = false }: WorkerExit & { reason: string },
  ): Promise<void> {
    const { record } = worker;
    if (record.endedAt !== null) return;
    const { registry, reconcileQueue, queue, clock } = this.#deps;
    const expected =
      record.state === 'leaving' ||
      exitedCleanly({
        exitCode,
        readyAt: record.readyAt,
        worked: this.#hasWorked(worker),
        at: at ?? clock.now(),
      });
    // The finding of its own fitness check says more than the last line of its log.
    const summary =
      expected || disrupted
        ? ''
        : (queue.heartbeats.statusOf(record.endpointId, record.id)?.unhealthy ??
          (await this.#crashSummary(record)));
    const fullReason = summary === '' ? reason : `${reason}: ${summary}`;
    await this.#terminate(worker, { exitCode, reason: expected ? worker.drainReason : fullReason, at }, () =>
      this.#loseJobs(record, (expected ? worker.drainReason : null) ?? fullReason),
    );
    const isCrash = !expected && !disrupted;
    if (isCrash) registry.announceCrash(worker, exitCode);
    const workerSet = registry.find(record.endpointId);
    if (workerSet !== undefined && (isCrash || expected))
      workerSet.crashes = expected
        ? NO_CRASHES
        : recordCrash(workerSet.crashes, {
            lastLine: summary === '' ? reason : summary,
            ran: worker.runningSince !== null,
            now: clock.now(),
          });
    reconcileQueue.enqueue(record.endpointId);
  }

  /** Removes the instance. The record and the log are kept. */
  terminate(worker: TrackedWorker, ending: WorkerExit): Promise<void> {
    return this.#track(worker, this.#terminate(worker, ending));
  }

  /**
   * A worker is no longer tracked some time before its termination is complete. Resolves when it is: for one
   * worker, for all of an endpoint, or for all.
   */
  async waitUntilDone(endpointId?: string, workerId?: string): Promise<void> {
    const matches = (one: { endpointId: string; workerId: string }): boolean =>
      one.endpointId === (endpointId ?? one.endpointId) && one.workerId === (workerId ?? one.workerId);
    await Promise.allSettled([...this.#pending].filter(matches).map(({ done }) => done));
  }

  #track({ record: { endpointId, id } }: TrackedWorker, done: Promise<void>): Promise<void> {
    const termination = { endpointId, workerId: id, done };
    this.#pending.add(termination);
    return done.finally(() => this.#pending.delete(termination));
  }

  /** `before` runs while its heartbeats are still known. */
  async #terminate(
    worker: TrackedWorker,
    { exitCode = null, reason, at = this.#deps.clock.now() }: WorkerExit,
    before?: () => Promise<void>,
  ): Promise<void> {
    const { registry, queue, engines, log } = this.#deps;
    const { id, endpointId, dataCenterId, state } = worker.record;
    if (exitCode === null && state !== 'leaving') this.#unrecorded.add(worker);
    worker.record = { ...worker.record, state: 'ended', endedAt: at, exitCode, reason };
    registry.removeWorker(worker);
    try {
      await before?.();
    } catch (error) {
      // The reaper finds them when their leases are due.
      log.warn({ err: error, workerId: id }, 'the jobs of a worker that ended could not be returned yet');
    }
    queue.heartbeats.removeWorker(endpointId, id);
    // Before the instance is removed: after a crash in between, nobody would know when it ended.
    await withStoreRetries(() => registry.save(worker)).finally(() => this.#unrecorded.delete(worker));
    registry.changes.notify(endpointId);
    try {
      await engines.get(dataCenterId)?.remove(id);
    } catch (error) {
      log.warn(
        { err: error, workerId: id },
        'the instance of a worker could not be removed; trying again later',
      );
    }
  }

  /** Whether its end is being recorded, though it is no longer tracked. */
  isPending(workerId: string): boolean {
    return [...this.#pending].some((one) => one.workerId === workerId);
  }

  /**
   * How many workers of an endpoint leave or have ended, and the next leader would find them active. They
   * take the places of others until that is stored.
   */
  countUnrecorded(endpointId: string): number {
    return [...this.#unrecorded].filter(({ record }) => record.endpointId === endpointId).length;
  }

  async #loseJobs({ endpointId, id }: Worker, reason: string | null): Promise<void> {
    await this.#deps.queue.reaper.workerGone(
      endpointId,
      id,
      `the worker that ran the job ended${reason === null ? '' : `: ${reason}`}`,
    );
  }

  #hasWorked({ served, record: { endpointId, id } }: TrackedWorker): boolean {
    return served || this.#deps.queue.heartbeats.statusOf(endpointId, id)?.worked === true;
  }

  #isBusy({ endpointId, id }: Worker): boolean {
    const { queue, inFlight } = this.#deps;
    return (queue.heartbeats.statusOf(endpointId, id)?.busy ?? 0) > 0 || inFlight(endpointId, id) > 0;
  }

  async #crashSummary({ id, dataCenterId }: Worker): Promise<string> {
    const engine = this.#deps.engines.get(dataCenterId);
    return engine === undefined ? '' : (await readCrashSummary(engine, id)).slice(0, MAX_REASON_LENGTH);
  }
}
