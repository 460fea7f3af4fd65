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
  clock: Clock;
  log: Log;
}

/** Clears away what is left of endpoints that are gone: their workers end at once, and nothing of them stays. */
export class EndpointRemovals {
  readonly #deps: EndpointRemovalsDeps;
  readonly #underWay = new Set<string>();

  constructor(deps: EndpointRemovalsDeps) {
    this.#deps = deps;
  }

  /** Nothing is started for this endpoint any more. */
  isRemoving(endpointId: string): boolean {
    return this.#underWay.has(endpointId);
  }

  async remove(endpointId: string): Promise<void> {
    if (this.#underWay.has(endpointId)) return;
    this.#underWay.add(endpointId);
    try {
      await this.#deps.reconcileQueue.over(endpointId);
      await this.#clear(endpointId);
    } finally {
      this.#underWay.delete(endpointId);
    }
  }

  /** The endpoint was removed, and something of it is still here: the server ended in the middle of it, or an engine was away. */
  async finishRemoval(endpointId: string): Promise<void> {
    await this.#clear(endpointId);
    await this.#deps.queue.removeEndpoint(endpointId);
  }

  async #clear(endpointId: string): Promise<void> {
    const { registry, termination, store, clock } = this.#deps;
    await Promise.all(registry.workersOf(endpointId).map((member) => this.#clearWorker(member)));
    // Of a worker that has just ended by itself, the instance may still be there.
    await termination.waitUntilDone(endpointId);
    if (registry.workersOf(endpointId).length > 0) return;
    registry.removeEndpoint(endpointId);
    await Promise.all((await store.listEndedWorkers(endpointId)).map((worker) => this.#forgetLog(worker)));
    await store.removeEndpoint(endpointId, clock.now());
  }

  /** One whose engine does not answer is tried again with the next look. */
  async #clearWorker(member: TrackedWorker): Promise<void> {
    const { registry, engines, log } = this.#deps;
    const { id, endpointId, dataCenterId } = member.record;
    const engine = engines.get(dataCenterId);
    try {
      // What is under way may have got past the point where it can be called back.
      await engine?.remove(id, 0);
      await member.launching;
      await engine?.remove(id, 0);
      await engine?.forgetLog(id);
      registry.removeWorker(member);
    } catch (error) {
      log.warn(
        { err: error, endpointId, workerId: id },
        'a worker of an endpoint that is gone could not be removed; trying again',
      );
    }
  }

  /** One that cannot be removed now goes when its time is over. */
  async #forgetLog({ id, endpointId, dataCenterId }: Worker): Promise<void> {
    const { engines, log } = this.#deps;
    try {
      await engines.get(dataCenterId)?.forgetLog(id);
    } catch (error) {
      log.warn(
        { err: error, endpointId, workerId: id },
        'the log of a worker of an endpoint that is gone could not be removed',
      );
    }
  }
}
