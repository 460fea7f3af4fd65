import type { ReconcileQueue } from '../reconcile-queue.ts';
import type { WorkerRegistry } from './worker-registry.ts';

const MIN_PAUSE_MS = 10;

/**
 * Reconciles an endpoint without an active worker as soon as a job is queued; otherwise the next
 * tick is soon enough. Jobs that follow shortly share one reconciliation, and while more come and
 * no worker does, the pauses between reconciliations grow.
 */
export class ScaleUpTrigger {
  readonly #registry: WorkerRegistry;
  readonly #reconcileQueue: ReconcileQueue;
  readonly #maxPauseMs: number;
  /** Endpoints that were just reconciled, and whether another job was queued since. */
  readonly #pauses = new Map<string, { again: boolean }>();

  constructor(registry: WorkerRegistry, reconcileQueue: ReconcileQueue, maxPauseMs: number) {
    this.#registry = registry;
    this.#reconcileQueue = reconcileQueue;
    this.#maxPauseMs = maxPauseMs;
  }

  onJobQueued(endpointId: string): void {
    if (this.#hasActiveWorker(endpointId)) return;
    const pause = this.#pauses.get(endpointId);
    if (pause === undefined) this.#trigger(endpointId, MIN_PAUSE_MS);
    else pause.again = true;
  }

  #trigger(endpointId: string, pauseMs: number): void {
    this.#reconcileQueue.enqueue(endpointId);
    const pause = { again: false };
    this.#pauses.set(endpointId, pause);
    setTimeout(() => {
      this.#pauses.delete(endpointId);
      if (pause.again && !this.#hasActiveWorker(endpointId))
        this.#trigger(endpointId, Math.min(2 * pauseMs, this.#maxPauseMs));
    }, pauseMs).unref();
  }

  #hasActiveWorker(endpointId: string): boolean {
    return this.#registry.find(endpointId)?.hasActiveWorker === true;
  }
}
