import type { InstanceAddress } from '../../engines/instance.ts';
import type { Worker } from '../../domain/endpoints/worker-record.ts';
import type { TrackedWorker } from './tracked-worker.ts';
import type { WorkerRegistry } from './worker-registry.ts';

/** Another machine's own address: a program there, or the end of a connection that is forwarded. */
const LOOPBACK = /^(?:127\.|localhost$|\[?::1\]?$)/;

/** Where this server reaches a worker of a load balancing endpoint; undefined while it does not. */
export type ReachWorker = (endpointId: string, worker: Worker) => Promise<InstanceAddress | undefined>;

interface KnownAddress {
  endpointId: string;
  /** As the leading server reported it. */
  reported: string;
  /** Undefined until it is found. */
  here: InstanceAddress | undefined;
}

/**
 * Reported addresses on the loopback interface are good at the leading server alone: this one asks its own
 * engine where it reaches the same worker. Until that is known, the worker takes no requests here.
 */
export class ReachableAddresses {
  readonly #mirror: WorkerRegistry;
  readonly #reach: ReachWorker;
  readonly #known = new Map<string, KnownAddress>();

  constructor(mirror: WorkerRegistry, reach: ReachWorker) {
    this.#mirror = mirror;
    this.#reach = reach;
  }

  clear(): void {
    this.#known.clear();
  }

  /** To be called with every worker that was read from a report. */
  replace(endpointId: string, worker: Pick<TrackedWorker, 'record' | 'address'>): void {
    const { record, address } = worker;
    if (address === undefined || !LOOPBACK.test(address.host)) return;
    const reported = `${address.host} ${address.port}`;
    const known = this.#known.get(record.id);
    if (known?.reported !== reported) this.#known.set(record.id, { endpointId, reported, here: undefined });
    worker.address = known?.reported === reported ? known.here : undefined;
  }

  /** Looks for those that are not found yet, and forgets those of workers that are gone. */
  async find(): Promise<void> {
    await Promise.all(
      [...this.#known].map(async ([id, known]) => {
        const worker = this.#mirror.findWorker(known.endpointId, id);
        if (worker === undefined) this.#known.delete(id);
        else if (known.here === undefined) await this.#find(worker.record, known);
      }),
    );
  }

  /** What fails is asked for again at the next look. */
  async #find(record: Worker, known: KnownAddress): Promise<void> {
    const address = await this.#reach(known.endpointId, record).catch(() => undefined);
    if (address === undefined || this.#known.get(record.id) !== known) return;
    known.here = address;
    const worker = this.#mirror.findWorker(known.endpointId, record.id);
    if (worker === undefined) return;
    worker.address = address;
    this.#mirror.changes.notify(known.endpointId);
  }
}
