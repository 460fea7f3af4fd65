import type { WorkerStore } from '../../store/worker-store.ts';
import { ChangeNotifier } from '../../support/change-notifier.ts';
import type { Log } from '../../support/log.ts';
import { EndpointWorkerSet } from './endpoint-worker-set.ts';
import type { TrackedWorker } from './tracked-worker.ts';

/**
 * The workers that this server looks after, by endpoint. What must survive a restart is in the
 * store as well. Empty where another server looks after them: whoever is in the middle of
 * something with a worker sees by that that it is no longer theirs to go on with.
 */
export class WorkerRegistry {
  /** Tells, by endpoint, that something about its workers has changed. */
  readonly changes = new ChangeNotifier();
  readonly #store: WorkerStore;
  readonly #log: Log;
  readonly #fleets = new Map<string, EndpointWorkerSet>();

  constructor(store: WorkerStore, log: Log) {
    this.#store = store;
    this.#log = log;
  }

  find(endpointId: string): EndpointWorkerSet | undefined {
    return this.#fleets.get(endpointId);
  }

  /** As `find`, and makes it where there is none. */
  getOrCreate(endpointId: string): EndpointWorkerSet {
    let fleet = this.#fleets.get(endpointId);
    if (fleet === undefined) {
      fleet = new EndpointWorkerSet(endpointId);
      this.#fleets.set(endpointId, fleet);
    }
    return fleet;
  }

  endpointIds(): string[] {
    return [...this.#fleets.keys()];
  }

  workersOf(endpointId: string): TrackedWorker[] {
    return [...(this.#fleets.get(endpointId)?.workers.values() ?? [])];
  }

  findWorker(endpointId: string, workerId: string): TrackedWorker | undefined {
    return this.#fleets.get(endpointId)?.workers.get(workerId);
  }

  /** Where only the instance is known, as an engine knows it. */
  findWorkerByInstance(id: string): TrackedWorker | undefined {
    for (const { workers } of this.#fleets.values()) {
      const member = workers.get(id);
      if (member !== undefined) return member;
    }
    return undefined;
  }

  /** It is this very one that is looked after, and not one that took up its id since. */
  isTracked(member: TrackedWorker): boolean {
    const { endpointId, id } = member.record;
    return this.findWorker(endpointId, id) === member;
  }

  async save({ record }: TrackedWorker): Promise<void> {
    await this.#store.saveWorker(record);
  }

  /** A worker that started takes work from now on. */
  markReady(member: TrackedWorker, now: number): void {
    const { id, endpointId } = member.record;
    member.record = { ...member.record, state: 'ready', readyAt: now };
    this.save(member).catch((error: unknown) =>
      this.#log.warn({ err: error, workerId: id }, 'it could not be written down that a worker is ready'),
    );
    this.changes.notify(endpointId);
  }

  removeWorker(member: TrackedWorker): void {
    if (this.isTracked(member)) this.#fleets.get(member.record.endpointId)?.workers.delete(member.record.id);
  }

  removeEndpoint(endpointId: string): void {
    this.#fleets.delete(endpointId);
  }

  clear(): void {
    this.#fleets.clear();
  }
}
