import type { InstanceEngine } from '../../engines/engine.ts';
import type { InstanceEvent } from '../../engines/instance.ts';
import type { WorkerStore } from '../../store/worker-store.ts';
import type { Log } from '../../support/log.ts';
import type { ReconcileQueue } from '../reconcile-queue.ts';
import { adoptWorkers } from './worker-adoption.ts';
import type { WorkerTermination } from './worker-termination.ts';
import type { WorkerRegistry } from './worker-registry.ts';

/** Before an engine that did not answer is asked again for its workers. */
const RECONNECT_MS = 2_000;

export interface DataCenterConnectionsDeps {
  registry: WorkerRegistry;
  termination: WorkerTermination;
  reconcileQueue: ReconcileQueue;
  store: WorkerStore;
  /** By data center. */
  engines: ReadonlyMap<string, InstanceEngine>;
  log: Log;
}

/** The data centers whose workers are known and heard of. Elsewhere nothing is started: what is wanted may already be there. */
export class DataCenterConnections {
  readonly #deps: DataCenterConnectionsDeps;
  readonly #connected = new Set<string>();
  /** What is under way, or done, to know them. Anew each time that this server begins to look after workers; undefined while it does not. */
  #attempts: Map<string, Promise<void>> | undefined;
  readonly #unwatch: (() => void)[] = [];

  constructor(deps: DataCenterConnectionsDeps) {
    this.#deps = deps;
  }

  /** This server looks after workers. */
  get isOpen(): boolean {
    return this.#attempts !== undefined;
  }

  async open(): Promise<void> {
    this.#attempts = new Map();
    await Promise.all([...this.#deps.engines.keys()].map((dataCenterId) => this.connect(dataCenterId)));
  }

  /** Lets go of all of them. */
  close(): void {
    for (const unwatch of this.#unwatch.splice(0)) unwatch();
    this.#connected.clear();
    this.#attempts = undefined;
  }

  isConnected(dataCenterId: string): boolean {
    return this.#connected.has(dataCenterId);
  }

  /** Takes up the workers of a data center and hears of them from now on. Where its engine does not answer, it is asked again later. */
  connect(dataCenterId: string): Promise<void> {
    const attempts = this.#attempts;
    const engine = this.#deps.engines.get(dataCenterId);
    if (engine === undefined || attempts === undefined) return Promise.resolve();
    const connecting = attempts.get(dataCenterId) ?? this.#connect(dataCenterId, engine, attempts);
    attempts.set(dataCenterId, connecting);
    return connecting;
  }

  async #connect(
    dataCenterId: string,
    engine: InstanceEngine,
    attempts: Map<string, Promise<void>>,
  ): Promise<void> {
    const { store, reconcileQueue, log } = this.#deps;
    // Another server may have taken over meanwhile, and this one again.
    const isCurrent = (): boolean => this.#attempts === attempts;
    try {
      await adoptWorkers(dataCenterId, engine, await store.listLiveWorkers(), this.#deps, isCurrent);
      if (!isCurrent()) return;
      this.#connected.add(dataCenterId);
      this.#unwatch.push(engine.watch((event) => this.#hear(event)));
      for (const endpointId of await store.listActiveEndpoints()) reconcileQueue.enqueue(endpointId);
    } catch (error) {
      if (!isCurrent()) return;
      log.warn(
        { err: error, dataCenterId },
        'the workers of a data center cannot be looked after; trying again',
      );
      attempts.delete(dataCenterId);
      setTimeout(() => void (isCurrent() && this.connect(dataCenterId)), RECONNECT_MS).unref();
    }
  }

  #hear({ id, status, exitCode, signal, at }: InstanceEvent): void {
    const { registry, termination, log } = this.#deps;
    const member = status === 'exited' ? registry.findWorkerByInstance(id) : undefined;
    if (member === undefined) return;
    const reason =
      signal === null ? `it ended with code ${exitCode ?? 'unknown'}` : `it was ended by ${signal}`;
    termination
      .handleExit(member, { exitCode, reason, at })
      .catch((error: unknown) => log.error({ err: error }, 'the end of a worker could not be written down'));
  }
}
