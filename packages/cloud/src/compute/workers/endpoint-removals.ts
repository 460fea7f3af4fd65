import type { InstanceEngine } from '../../engines/engine.ts';
import type { JobQueue } from '../../queue/job-queue.ts';
import type { WorkerStore } from '../../store/worker-store.ts';
import type { Clock } from '../../support/clock.ts';
import type { Log } from '../../support/log.ts';
import type { ReconcileQueue } from '../reconcile-queue.ts';
import type { WorkerTermination } from './worker-termination.ts';
import type { TrackedWorker } from './tracked-worker.ts';
import type { WorkerRegistry } from './worker-registry.ts';
import type { Worker } from '../../domain/endpoints/worker-record.ts';

export interface EndpointRemovalsDeps {
  registry: WorkerRegistry;
  termination: WorkerTermination;
  reconcileQueue: ReconcileQueue;
  queue: JobQueue;
  engines: ReadonlyMap<string, InstanceEngine>;
  store: WorkerStore;
  /** Whether this server starts and stops instances now. */
  isLeading(): boolean;
  clock: Clock;
  log: Log;
}

/**
 * Removes the workers of deleted endpoints: they end at once, and their logs and records are deleted. Only the
 * leader does that, when it has recorded how long each of them ran; it hears of deletions at other servers.
 */
export class EndpointRemovals {
  readonly #deps: EndpointRemovalsDeps;
  readonly #removing = new Set<string>();

  constructor(deps: EndpointRemovalsDeps) {
    this.#deps = deps;
  }

  /** While this is true, nothing may be started for the endpoint. */
  isRemoving(endpointId: string): boolean {
    return this.#removing.has(endpointId);
  }

  async remove(endpointId: string): Promise<void> {
    const { isLeading, reconcileQueue } = this.#deps;
    if (!isLeading() || this.#removing.has(endpointId)) return;
    this.#removing.add(endpointId);
    try {
      await reconcileQueue.whenDone(endpointId);
      await this.#removeAll(endpointId);
    } catch (error) {
      // The next leader continues with it.
      if (isLeading()) throw error;
    } finally {
      this.#removing.delete(endpointId);
    }
  }

  /**
   * Finishes the removal of a deleted endpoint that a stopped server or an unavailable engine interrupted.
   */
  async finishRemoval(endpointId: string): Promise<void> {
    await this.#removeAll(endpointId);
    await this.#deps.queue.removeEndpoint(endpointId);
  }

  async #removeAll(endpointId: string): Promise<void> {
    const { registry, termination, store, clock } = this.#deps;
    await Promise.all(registry.workersOf(endpointId).map((worker) => this.#removeWorker(worker)));
    // The instance of a worker that has just ended by itself may not be removed yet.
    await termination.waitUntilDone(endpointId);
    if (registry.workersOf(endpointId).length > 0) return;
    registry.removeEndpoint(endpointId);
    await Promise.all((await store.listEndedWorkers(endpointId)).map((worker) => this.#deleteLog(worker)));
    await store.removeWorkers(endpointId, clock.now());
  }

  /** If its engine does not answer, the next reconciliation tries again. */
  async #removeWorker(worker: TrackedWorker): Promise<void> {
    const { registry, engines, log } = this.#deps;
    const { id, endpointId, dataCenterId } = worker.record;
    const engine = engines.get(dataCenterId);
    try {
      // A start in progress may create the instance after the first removal.
      await engine?.remove(id, 0);
      await worker.launching;
      await engine?.remove(id, 0);
      await engine?.deleteLog(id);
      registry.removeWorker(worker);
    } catch (error) {
      log.warn(
        { err: error, endpointId, workerId: id },
        'a worker of a deleted endpoint could not be removed; trying again',
      );
    }
  }

  /** A log that cannot be deleted now is deleted when its retention ends. */
  async #deleteLog({ id, endpointId, dataCenterId }: Worker): Promise<void> {
    const { engines, log } = this.#deps;
    try {
      await engines.get(dataCenterId)?.deleteLog(id);
    } catch (error) {
      log.warn(
        { err: error, endpointId, workerId: id },
        'the log of a worker of a deleted endpoint could not be deleted',
      );
    }
  }
}
