import type { InstanceAddress } from '../../engines/instance.ts';
import type { WorkerStore } from '../../store/worker-store.ts';
import type { Endpoint } from '../../domain/records.ts';
import type { Clock } from '../../support/clock.ts';
import type { ReconcileQueue } from '../reconcile-queue.ts';
import type { InFlightRequests } from './in-flight-requests.ts';
import type { WorkerTermination } from './worker-termination.ts';
import type { WorkerLauncher } from './worker-launcher.ts';
import { isActive } from './tracked-worker.ts';
import { placeWorker } from '../../domain/placement/worker-placement.ts';
import type { EndpointRemovals } from './endpoint-removals.ts';
import type { WorkerRegistry } from './worker-registry.ts';
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

/** The workers of load balancing endpoints, as the gateway asks for them. */
export class LoadBalancerPool {
  readonly #deps: LoadBalancerPoolDeps;

  constructor(deps: LoadBalancerPoolDeps) {
    this.#deps = deps;
  }

  ready(endpointId: string): (InstanceAddress & { id: string })[] {
    return this.#deps.registry
      .workersOf(endpointId)
      .flatMap(({ record, address, unhealthy }) =>
        record.state === 'ready' && address !== undefined && unhealthy === null
          ? [{ id: record.id, ...address }]
          : [],
      );
  }

  /** Whether a worker that takes no requests yet may come to. */
  exists(endpointId: string, workerId: string): boolean {
    const member = this.#deps.registry.findWorker(endpointId, workerId);
    return member !== undefined && isActive(member);
  }

  /** Starts a worker again, under its id, that left because it had nothing to do. False where it belongs to the past, or there is no room for it. */
  async resume(endpointId: string, workerId: string): Promise<boolean> {
    const { registry, termination, removals, candidates, launcher, store } = this.#deps;
    const endpoint = await this.#deps.endpoint(endpointId);
    const leaving = registry.findWorker(endpointId, workerId);
    if (endpoint === undefined || (leaving !== undefined && leaving.record.version !== endpoint.version))
      return false;
    // It may be on its way out just now.
    await leaving?.draining;
    await termination.waitUntilDone(endpointId, workerId);
    const left = await store.findWorker(endpointId, workerId);
    if (left === undefined || left.endedAt === null || left.version !== endpoint.version) return false;
    // While another server looks after workers, no site is connected here.
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

  /** How many requests there are, in flight and waiting. */
  demand(endpointId: string, requests: number): void {
    const { registry, reconcileQueue } = this.#deps;
    const fleet = registry.getOrCreate(endpointId);
    const before = fleet.demand;
    fleet.demand = requests;
    if (requests > 0 && (before === 0 || !fleet.hasActiveWorker)) reconcileQueue.enqueue(endpointId);
  }

  /** A worker was given a request, or is done with one: its idle time starts anew. */
  touched(endpointId: string, workerId: string, inFlight: number): void {
    this.#deps.requests.set(endpointId, workerId, inFlight);
    const member = this.#deps.registry.findWorker(endpointId, workerId);
    if (member !== undefined) Object.assign(member, { served: true, idleSince: this.#deps.clock.now() });
  }

  waitForChange(endpointId: string, milliseconds: number, signal: AbortSignal): Promise<void> {
    return this.#deps.registry.changes.waitForNext(endpointId, milliseconds, signal).changed;
  }
}
