import { WORKER_TIMEOUT_MS } from '../../queue/worker-heartbeats.ts';
import type { JobQueue } from '../../queue/job-queue.ts';
import { isRecent } from '../../support/clock.ts';
import type { WorkerTermination } from './worker-termination.ts';
import type { TrackedWorker } from './tracked-worker.ts';
import type { WorkerRegistry } from './worker-registry.ts';

const CHECK_EVERY_MS = 5_000;
/** Found silent so often in a row, it is let go. Not the first time: it may be this server that was away, and what workers said meanwhile is still to be read. */
const REPLACE_AFTER_FAILURES = 2;
const TIMED_OUT_REASON = `it has not been heard of for ${WORKER_TIMEOUT_MS / 1000} s`;

export interface QueueWorkerHealthDeps {
  registry: WorkerRegistry;
  termination: WorkerTermination;
  queue: JobQueue;
}

/** Knows of the workers of queue endpoints whether they are there and busy: the queue hears of them when they ask for jobs and report on them. */
export class QueueWorkerHealth {
  readonly #deps: QueueWorkerHealthDeps;

  constructor(deps: QueueWorkerHealthDeps) {
    this.#deps = deps;
  }

  /** Takes in what this server has heard of a worker since the last time. */
  refresh(member: TrackedWorker, now: number): void {
    const { endpointId, id } = member.record;
    this.#takeIn(member, this.#deps.queue.heartbeats.statusOf(endpointId, id), now);
  }

  /** As `hear`, with what other servers have heard of one that this server knows nothing of. One that has fallen silent is let go: it takes no job any more, and would keep another from being started for those that wait. */
  async check(member: TrackedWorker, now: number): Promise<void> {
    this.refresh(member, now);
    if (isRecent(member.checkedAt, CHECK_EVERY_MS, now)) return;
    member.checkedAt = now;
    const { termination, queue } = this.#deps;
    const { endpointId, id } = member.record;
    if (queue.heartbeats.statusOf(endpointId, id) === undefined)
      this.#takeIn(
        member,
        (await queue.workers(endpointId)).find(({ workerId }) => workerId === id),
        now,
      );
    if (member.record.state !== 'ready') return;
    member.strikes = (await queue.reaper.isUnresponsive(endpointId, id)) ? member.strikes + 1 : 0;
    if (member.strikes < REPLACE_AFTER_FAILURES) return;
    member.unhealthy = TIMED_OUT_REASON;
    void termination.drain(member, TIMED_OUT_REASON);
  }

  #takeIn(
    member: TrackedWorker,
    seen: { busy: number; unhealthy: string | null } | undefined,
    now: number,
  ): void {
    const { registry, termination, queue } = this.#deps;
    const { endpointId, id } = member.record;
    if (seen === undefined) return;
    member.unhealthy = seen.unhealthy ?? (member.strikes < REPLACE_AFTER_FAILURES ? null : TIMED_OUT_REASON);
    if (member.record.state === 'starting') registry.markReady(member, now);
    const busy = seen.busy > 0;
    if (busy) member.idleSince = null;
    else if (member.busy || member.idleSince === null) member.idleSince = now;
    member.busy = busy;
    // With other jobs it is left to finish them, if it can.
    const goesOn = busy
      ? queue.cancellations.isStuck(endpointId, id)
      : queue.cancellations.ignoresCancellation(endpointId, id);
    if (goesOn)
      void termination.drain(member, 'it went on with a job that was cancelled or had run out of time');
  }
}
