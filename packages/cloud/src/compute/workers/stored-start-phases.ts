import { startPhases, type StartPhases } from '../../domain/endpoints/start-phases.ts';
import type { WorkerStore } from '../../store/worker-store.ts';

const MAX_CACHED = 10_000;

/**
 * The start phases of workers that are not tracked here: they have ended, or another server is the leader.
 * Those that do not change any more are cached, since clients ask for the status of many jobs of one worker.
 */
export class StoredStartPhases {
  readonly #store: Pick<WorkerStore, 'findWorker'>;
  readonly #cache = new Map<string, StartPhases | undefined>();

  constructor(store: Pick<WorkerStore, 'findWorker'>) {
    this.#store = store;
  }

  /** Undefined for a worker that Berth did not start. */
  of(endpointId: string, workerId: string): StartPhases | undefined | Promise<StartPhases | undefined> {
    return this.#cache.has(workerId) ? this.#cache.get(workerId) : this.#read(endpointId, workerId);
  }

  async #read(endpointId: string, workerId: string): Promise<StartPhases | undefined> {
    const worker = await this.#store.findWorker(endpointId, workerId);
    const phases = worker && startPhases(worker);
    // A worker is recorded before it is started: one without a record never gets one.
    const isFinal = worker === undefined || worker.firstJobAt !== null || worker.endedAt !== null;
    if (isFinal) {
      if (this.#cache.size >= MAX_CACHED) this.#cache.clear();
      this.#cache.set(workerId, phases);
    }
    return phases;
  }
}
