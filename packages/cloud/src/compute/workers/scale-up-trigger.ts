import type { ReconcileQueue } from '../reconcile-queue.ts';
import type { WorkerRegistry } from './worker-registry.ts';

const MIN_PAUSE_MS = 10;

/**
 * With no worker yet, or none that stays, a job that waits is reason to look at its endpoint at
 * once; otherwise the next tick is soon enough. Jobs that come right after it are looked at
 * together, and while they keep coming and no worker does, the looks become rarer.
 */
export class ScaleUpTrigger {
  readonly #registry: WorkerRegistry;
  readonly #reconcileQueue: ReconcileQueue;
  readonly #longestPauseMs: number;
  /** Endpoints that were just looked at, and whether another job came since. */
  readonly #pauses = new Map<string, { again: boolean }>();

  constructor(registry: WorkerRegistry, reconcileQueue: ReconcileQueue, longestPauseMs: number) {
    this.#registry = registry;
    this.#reconcileQueue = reconcileQueue;
    this.#longestPauseMs = longestPauseMs;
  }

  onJobQueued(endpointId: string): void {
    if (this.#isManned(endpointId)) return;
    const pause = this.#pauses.get(endpointId);
    if (pause === undefined) this.#look(endpointId, MIN_PAUSE_MS);
    else pause.again = true;
  }

  #look(endpointId: string, pauseMs: number): void {
    this.#reconcileQueue.enqueue(endpointId);
    const pause = { again: false };
    this.#pauses.set(endpointId, pause);
    setTimeout(() => {
      this.#pauses.delete(endpointId);
      if (pause.again && !this.#isManned(endpointId))
        this.#look(endpointId, Math.min(2 * pauseMs, this.#longestPauseMs));
    }, pauseMs).unref();
  }

  #isManned(endpointId: string): boolean {
    return this.#registry.find(endpointId)?.hasActiveWorker === true;
  }
}
