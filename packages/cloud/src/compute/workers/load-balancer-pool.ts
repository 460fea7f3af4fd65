import type { Upstream, WorkerPool } from '../../domain/endpoints/worker-pool.ts';
import type { WorkerStore } from '../../store/worker-store.ts';
import type { Endpoint } from '../../domain/records.ts';
import type { Clock } from '../../support/clock.ts';
import type { ReconcileQueue } from '../reconcile-queue.ts';
import type { InFlightRequests, RemoteDemand } from './in-flight-requests.ts';
import type { WorkerTermination } from './worker-termination.ts';
import type { WorkerLauncher } from './worker-launcher.ts';
import { isActive } from './tracked-worker.ts';
import { placeWorker } from '../../domain/placement/worker-placement.ts';
import type { EndpointRemovals } from './endpoint-removals.ts';
import { readyUpstreams, type WorkerRegistry } from './worker-registry.ts';
import type { WorkerCandidates } from './worker-candidates.ts';

export interface LoadBalancerPoolDeps {
  registry: WorkerRegistry;
  reconcileQueue: ReconcileQueue;
  requests: InFlightRequests;
  termination: WorkerTermination;
  removals: EndpointRemovals;
  candidates: WorkerCandidates;
  launcher: WorkerLauncher;
  store: WorkerStore;
  endpoint(id: string): Promise<Endpoint | undefined>;
  clock: Clock;
}

/** The workers of load balancing endpoints, for the gateway. */
export class LoadBalancerPool implements WorkerPool {
  readonly #deps: LoadBalancerPoolDeps;

  constructor(deps: LoadBalancerPoolDeps) {
    this.#deps = deps;
  }

  ready(endpointId: string): Upstream[] {
    return readyUpstreams(this.#deps.registry, endpointId);
  }

  exists(endpointId: string, workerId: string): boolean {
    const worker = this.#deps.registry.findWorker(endpointId, workerId);
    return worker !== undefined && isActive(worker);
  }

  /**
   * Starts a worker that was scaled down again, under its id. False if the endpoint has a newer version, or
   * there is no capacity.
   */
  async resume(endpointId: string, workerId: string): Promise<boolean> {
    const { registry, termination, removals, candidates, launcher, store } = this.#deps;
    const endpoint = await this.#deps.endpoint(endpointId);
    const leaving = registry.findWorker(endpointId, workerId);
    if (endpoint === undefined || (leaving !== undefined && leaving.record.version !== endpoint.version))
      return false;
    // It may be stopping just now.
    await leaving?.draining;
    await termination.waitUntilDone(endpointId, workerId);
    const ended = await store.findWorker(endpointId, workerId);
    if (ended === undefined || ended.endedAt === null || ended.version !== endpoint.version) return false;
    // While another server is the leader, no data center is connected here.
    const placement = placeWorker(endpoint, await candidates.find(endpoint));
    if (removals.isRemoving(endpointId) || this.exists(endpointId, workerId))
      return this.exists(endpointId, workerId);
    if (
      registry.findWorker(endpointId, workerId) !== undefined ||
      registry.workersOf(endpointId).length >= endpoint.workersMax ||
      'refused' in placement
    )
      return false;
    launcher.launch(endpoint, placement.place, workerId);
    return true;
  }

  reportDemand(endpointId: string, requests: number): void {
    const { registry, reconcileQueue } = this.#deps;
    const workerSet = registry.getOrCreate(endpointId);
    const before = workerSet.demand;
    workerSet.demand = requests;
    if (requests > 0 && (before === 0 || !workerSet.hasActiveWorker)) reconcileQueue.enqueue(endpointId);
  }

  reportActivity(endpointId: string, workerId: string, inFlight: number): void {
    this.#deps.requests.set(endpointId, workerId, inFlight);
    const worker = this.#deps.registry.findWorker(endpointId, workerId);
    if (worker === undefined) return;
    worker.served = true;
    worker.idleSince = this.#deps.clock.now();
    this.#deps.registry.markFirstJob(worker, worker.idleSince);
  }

  /** Another server has requests for this endpoint. */
  reportRemoteDemand(endpointId: string, server: string, demand: RemoteDemand): void {
    const { registry, requests, reconcileQueue, clock } = this.#deps;
    const before = requests.remoteDemand(endpointId);
    requests.setRemote(endpointId, server, demand);
    const workerSet = registry.getOrCreate(endpointId);
    for (const id of Object.keys(demand.inFlight)) {
      const worker = workerSet.workers.get(id);
      if (worker === undefined) continue;
      worker.served = true;
      worker.idleSince = clock.now();
      registry.markFirstJob(worker, worker.idleSince);
    }
    if (demand.requests > 0 && (before === 0 || !workerSet.hasActiveWorker))
      reconcileQueue.enqueue(endpointId);
  }

  waitForChange(endpointId: string, milliseconds: number, signal: AbortSignal): Promise<void> {
    return this.#deps.registry.changes.waitForNext(endpointId, milliseconds, signal).changed;
  }
}
