import type { TakenJob } from '../domain/job-records.ts';
import type { JobTracing } from '../domain/tracing.ts';
import type { CloudEventBus } from '../domain/events.ts';
import type { CancelSignal } from '../support/cancel-signal.ts';
import type { CancellationRegistry } from './cancellation-registry.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { RequestCredentials } from './request-credentials.ts';
import { Waiters } from './waiters.ts';
import type { WorkerHeartbeats } from './worker-heartbeats.ts';

/** A worker that asked to be replaced gets no jobs for this long; by then its engine has replaced it. */
const WORKER_PAUSE_MS = 15_000;
/**
 * A take of a paused worker is held this long: the worker must not poll in a hot loop, nor wait long for an
 * answer when it has to stop.
 */
const PAUSED_POLL_MS = 1_500;

interface WorkerPollsDeps {
  heartbeats: WorkerHeartbeats;
  cancellations: CancellationRegistry;
  dispatcher: Dispatcher;
  events: CloudEventBus;
  credentials?: RequestCredentials | undefined;
  tracing?: JobTracing | undefined;
}

/**
 * The long polls of workers, for jobs and for cancellations, and who gets nothing for a while or ever again.
 */
export class WorkerPolls {
  readonly #deps: WorkerPollsDeps;
  /** Waits of paused workers. */
  readonly #pausedPolls = new Waiters<string>();
  #closed = false;

  constructor(deps: WorkerPollsDeps) {
    this.#deps = deps;
  }

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
    if (!this.#deps.heartbeats.isPaused(endpointId, workerId))
      return this.#openRequests(
        endpointId,
        this.#deps.dispatcher.waitForJobs(endpointId, workerId, room, milliseconds, signal),
      );
    if (this.#closed) return Promise.resolve([]);
    // A paused worker gets nothing, but its poll is held: an immediate answer would make it poll again
    // immediately.
    return this.#pausedPolls
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

  /** The worker asked to be replaced: it gets no more jobs, and its long polls end now. */
  pauseWorker(endpointId: string, workerId: string): void {
    this.#deps.heartbeats.pause(endpointId, workerId, WORKER_PAUSE_MS);
    this.endLongPolls(endpointId, workerId);
    this.#deps.events.publish('worker.refresh-requested', { endpointId, workerId, source: 'request' });
  }

  /** The worker asked to be replaced in the result of a job. */
  pauseWorkerAfterResult(endpointId: string, workerId: string): void {
    this.#deps.heartbeats.recordLastResult(endpointId, workerId);
    this.pauseWorker(endpointId, workerId);
  }

  /** The worker is being stopped: it gets no more jobs, and its long polls end now. */
  drainWorker(endpointId: string, workerId: string): void {
    this.#deps.heartbeats.drain(endpointId, workerId);
    this.endLongPolls(endpointId, workerId);
  }

  /** Ends the long polls of a worker. */
  endLongPolls(endpointId: string, workerId: string): void {
    this.#deps.dispatcher.endPendingTakes(endpointId, workerId);
    this.#deps.cancellations.endLongPoll(endpointId, workerId);
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
      : this.#deps.heartbeats.isPaused(endpointId, workerId)
        ? PAUSED_POLL_MS
        : milliseconds;
    return this.#deps.cancellations.waitForDue(endpointId, workerId, longest, signal);
  }

  /** Ends the waits of paused workers. */
  wakePaused(): void {
    this.#pausedPolls.wakeAll();
  }

  close(): void {
    this.#closed = true;
    this.wakePaused();
  }
}
