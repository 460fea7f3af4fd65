import { WORKER_TIMEOUT_MS } from '../../queue/connected-worker.ts';
import type { WorkerHeartbeat } from '../../domain/job-records.ts';
import type { JobQueue } from '../../queue/job-queue.ts';
import { isRecent } from '../../support/clock.ts';
import { HEALTH_CHECK_INTERVAL_MS } from '../reconcile-settings.ts';
import type { WorkerTermination } from './worker-termination.ts';
import { isLaunching, type TrackedWorker } from './tracked-worker.ts';
import type { WorkerRegistry } from './worker-registry.ts';

/**
 * A worker is drained after so many checks without a heartbeat. Not after the first: this server itself may
 * have been suspended, with heartbeats still to be read.
 */
const REPLACE_AFTER_FAILURES = 2;
const TIMED_OUT_REASON = `it has not been heard of for ${WORKER_TIMEOUT_MS / 1000} s`;

export interface QueueWorkerHealthDeps {
  registry: WorkerRegistry;
  termination: WorkerTermination;
  queue: JobQueue;
}

/**
 * Tells from their heartbeats (takes, pings and results) whether the workers of queue endpoints are alive and
 * busy.
 */
export class QueueWorkerHealth {
  readonly #deps: QueueWorkerHealthDeps;

  constructor(deps: QueueWorkerHealthDeps) {
    this.#deps = deps;
  }

  /** Applies the heartbeats that this server has received. */
  refresh(worker: TrackedWorker, now: number): void {
    const { endpointId, id } = worker.record;
    this.#apply(worker, this.#deps.queue.heartbeats.statusOf(endpointId, id), now);
  }

  /** As `refresh`; whether the worker need not be checked now. */
  isKnownAlive(worker: TrackedWorker, now: number): boolean {
    this.refresh(worker, now);
    const { endpointId, id } = worker.record;
    const { heartbeats } = this.#deps.queue;
    return (
      isLaunching(worker) ||
      (heartbeats.statusOf(endpointId, id) !== undefined && heartbeats.isAlive(endpointId, id) === true) ||
      isRecent(worker.checkedAt, HEALTH_CHECK_INTERVAL_MS, now)
    );
  }

  /**
   * As `refresh`, and for a worker without a heartbeat here, with those of other servers. A worker without
   * any is drained: it takes no jobs, and would keep another from being started.
   */
  async check(worker: TrackedWorker, now: number): Promise<void> {
    this.refresh(worker, now);
    if (isRecent(worker.checkedAt, HEALTH_CHECK_INTERVAL_MS, now)) return;
    worker.checkedAt = now;
    const { termination, queue } = this.#deps;
    const { endpointId, id } = worker.record;
    if (queue.heartbeats.statusOf(endpointId, id) === undefined)
      this.#apply(
        worker,
        (await queue.workers(endpointId)).find(({ workerId }) => workerId === id),
        now,
      );
    if (worker.record.state !== 'ready') return;
    worker.failedChecks = (await queue.reaper.isUnresponsive(endpointId, id)) ? worker.failedChecks + 1 : 0;
    if (worker.failedChecks < REPLACE_AFTER_FAILURES) return;
    worker.unhealthyReason = TIMED_OUT_REASON;
    void termination.drain(worker, TIMED_OUT_REASON);
  }

  #apply(
    worker: TrackedWorker,
    heartbeat:
      | (Pick<WorkerHeartbeat, 'busy' | 'unhealthy' | 'accelerated'> & {
          connectedAt?: number;
          firstJobAt?: number | null;
        })
      | undefined,
    now: number,
  ): void {
    const { registry, termination, queue } = this.#deps;
    const { endpointId, id } = worker.record;
    if (heartbeat === undefined) return;
    worker.unhealthyReason =
      heartbeat.unhealthy ?? (worker.failedChecks < REPLACE_AFTER_FAILURES ? null : TIMED_OUT_REASON);
    if (worker.record.state === 'starting') registry.markReady(worker, heartbeat.connectedAt ?? now);
    const busy = heartbeat.busy > 0;
    // Of a job that another server gave to it, only that it runs is known.
    const firstJobAt = heartbeat.firstJobAt ?? (busy ? now : null);
    if (firstJobAt !== null) registry.markFirstJob(worker, firstJobAt);
    if (busy) worker.idleSince = null;
    else if (worker.busy || worker.idleSince === null) worker.idleSince = now;
    if (busy !== worker.busy) registry.announce(worker.record);
    worker.busy = busy;
    worker.accelerated = heartbeat.accelerated;
    // A worker with other jobs may finish them, unless it is stuck.
    const ignoresCancellation = busy
      ? queue.cancellations.isStuck(endpointId, id)
      : queue.cancellations.ignoresCancellation(endpointId, id);
    if (ignoresCancellation)
      void termination.drain(worker, 'it went on with a job that was cancelled or had run out of time');
  }
}
