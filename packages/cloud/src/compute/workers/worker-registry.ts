import type { CloudEventBus } from '../../domain/events.ts';
import type { Upstream } from '../../domain/endpoints/worker-pool.ts';
import type { WorkerStore } from '../../store/worker-store.ts';
import { ChangeNotifier } from '../../support/change-notifier.ts';
import type { Log } from '../../support/log.ts';
import type { Worker } from '../../domain/endpoints/worker-record.ts';
import { EndpointWorkerSet } from './endpoint-worker-set.ts';
import { isLaunching, type TrackedWorker } from './tracked-worker.ts';

/** The load balancing workers that take requests, and where. */
export function readyUpstreams(registry: WorkerRegistry, endpointId: string): Upstream[] {
  return registry
    .workersOf(endpointId)
    .flatMap(({ record, address, unhealthyReason }) =>
      record.state === 'ready' && address !== undefined && unhealthyReason === null
        ? [{ id: record.id, ...address }]
        : [],
    );
}

/**
 * The live workers, by endpoint. What must survive a restart is in the store as well. The registry
 * is empty while another server is the leader: work in progress on a worker stops when it finds
 * that the worker is no longer tracked.
 */
export class WorkerRegistry {
  /** Notifies, by endpoint, of changes to its workers. */
  readonly changes = new ChangeNotifier();
  readonly #store: WorkerStore;
  readonly #log: Log;
  readonly #events: CloudEventBus | undefined;
  readonly #workerSets = new Map<string, EndpointWorkerSet>();
  /** The ids of workers are those of their instances. */
  readonly #byInstance = new Map<string, TrackedWorker>();
  readonly #saves = new Map<TrackedWorker, Promise<void>>();

  constructor(store: WorkerStore, log: Log, events?: CloudEventBus) {
    this.#store = store;
    this.#log = log;
    this.#events = events;
  }

  find(endpointId: string): EndpointWorkerSet | undefined {
    return this.#workerSets.get(endpointId);
  }

  getOrCreate(endpointId: string): EndpointWorkerSet {
    let workerSet = this.#workerSets.get(endpointId);
    if (workerSet === undefined) {
      workerSet = new EndpointWorkerSet(endpointId, this.#byInstance);
      this.#workerSets.set(endpointId, workerSet);
    }
    return workerSet;
  }

  endpointIds(): string[] {
    return [...this.#workerSets.keys()];
  }

  workersOf(endpointId: string): TrackedWorker[] {
    return [...(this.#workerSets.get(endpointId)?.workers.values() ?? [])];
  }

  findWorker(endpointId: string, workerId: string): TrackedWorker | undefined {
    return this.#workerSets.get(endpointId)?.workers.get(workerId);
  }

  /** An engine knows the instance id, which is the worker's id, but not the endpoint. */
  findWorkerByInstance(id: string): TrackedWorker | undefined {
    return this.#byInstance.get(id);
  }

  /** Whether this worker is tracked, and not a later one with the same id. */
  isTracked(worker: TrackedWorker): boolean {
    const { endpointId, id } = worker.record;
    return this.findWorker(endpointId, id) === worker;
  }

  /** Saves of one worker follow each other: of two at once, PostgreSQL could keep the earlier state. */
  async save(worker: TrackedWorker): Promise<void> {
    const { record } = worker;
    const earlier = this.#saves.get(worker);
    const save = (): Promise<void> => this.#store.saveWorker(record);
    const saving = earlier === undefined ? save() : earlier.then(save, save);
    this.#saves.set(worker, saving);
    try {
      await saving;
    } finally {
      if (this.#saves.get(worker) === saving) this.#saves.delete(worker);
    }
    this.announce(record);
  }

  /** Resolves when what is being stored is stored, or could not be. */
  async whenSaved(): Promise<void> {
    await Promise.allSettled(this.#saves.values());
  }

  /** Tells the rest of the server that a worker changed. */
  announce({ endpointId, id }: Pick<Worker, 'endpointId' | 'id'>): void {
    this.#events?.publish('worker.changed', { endpointId, workerId: id, source: 'reconciler' });
  }

  markReady(worker: TrackedWorker, now: number): void {
    const { id, endpointId } = worker.record;
    worker.record = { ...worker.record, state: 'ready', readyAt: now };
    this.save(worker).catch((error: unknown) =>
      this.#log.warn({ err: error, workerId: id }, 'the ready state of a worker could not be stored'),
    );
    this.changes.notify(endpointId);
    this.#events?.publish('worker.ready', { worker: worker.record });
  }

  /** A worker ended by itself. */
  announceCrash({ record, runningSince }: TrackedWorker, exitCode: number | null): void {
    const kind =
      exitCode === null ? (runningSince === null ? 'start' : 'timeout') : exitCode > 128 ? 'signal' : 'exit';
    this.#events?.publish('worker.crashed', { endpointId: record.endpointId, kind });
  }

  /** Does nothing if it had a job before. */
  markFirstJob(worker: TrackedWorker, at: number): void {
    const { id, firstJobAt, endedAt } = worker.record;
    if (firstJobAt !== null || endedAt !== null) return;
    worker.record = { ...worker.record, firstJobAt: at };
    this.save(worker).catch((error: unknown) =>
      this.#log.warn(
        { err: error, workerId: id },
        'the time of the first job of a worker could not be stored',
      ),
    );
  }

  /** Whether starts of workers are under way. */
  isLaunching(): boolean {
    return [...this.#byInstance.values()].some(isLaunching);
  }

  removeWorker(worker: TrackedWorker): void {
    if (this.isTracked(worker)) this.#workerSets.get(worker.record.endpointId)?.remove(worker.record.id);
  }

  removeEndpoint(endpointId: string): void {
    const workerSet = this.#workerSets.get(endpointId);
    this.#workerSets.delete(endpointId);
    for (const id of workerSet?.workers.keys() ?? []) this.#byInstance.delete(id);
  }

  clear(): void {
    this.#workerSets.clear();
    this.#byInstance.clear();
  }
}
