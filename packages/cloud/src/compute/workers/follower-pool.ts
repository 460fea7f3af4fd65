import type { Upstream, WorkerPool } from '../../domain/endpoints/worker-pool.ts';
import type { InFlightRequests, RemoteDemand } from './in-flight-requests.ts';
import type { LoadBalancerPool } from './load-balancer-pool.ts';
import { isActive } from './tracked-worker.ts';
import { readyUpstreams, type WorkerRegistry } from './worker-registry.ts';

/** Long requests are reported again, so that the leader does not count them as ended. */
const REPEAT_MS = 1_000;

export interface FollowerPoolDeps {
  leading: LoadBalancerPool;
  isLeading(): boolean;
  /** The workers as the leading server reported them. */
  mirror: WorkerRegistry;
  requests: InFlightRequests;
  /** Reports it to the leader. */
  publishDemand(endpointId: string, demand: RemoteDemand): void;
}

/**
 * The workers of load balancing endpoints on any server. A server that is not the leader reports its requests
 * to the leader.
 */
export class FollowerPool implements WorkerPool {
  readonly #deps: FollowerPoolDeps;
  readonly #demand = new Map<string, number>();
  readonly #scheduled = new Set<string>();
  readonly #repeat: NodeJS.Timeout;

  constructor(deps: FollowerPoolDeps) {
    this.#deps = deps;
    this.#repeat = setInterval(() => {
      for (const endpointId of this.#demand.keys()) this.#schedule(endpointId);
    }, REPEAT_MS);
    this.#repeat.unref();
  }

  close(): void {
    clearInterval(this.#repeat);
  }

  ready(endpointId: string): Upstream[] {
    const { leading, isLeading, mirror } = this.#deps;
    return isLeading() ? leading.ready(endpointId) : readyUpstreams(mirror, endpointId);
  }

  exists(endpointId: string, workerId: string): boolean {
    const { leading, isLeading, mirror } = this.#deps;
    if (isLeading()) return leading.exists(endpointId, workerId);
    const worker = mirror.findWorker(endpointId, workerId);
    return worker !== undefined && isActive(worker);
  }

  /** Only the leading server starts a worker again under its id; elsewhere it counts as gone. */
  async resume(endpointId: string, workerId: string): Promise<boolean> {
    const { leading, isLeading } = this.#deps;
    return isLeading() ? leading.resume(endpointId, workerId) : this.exists(endpointId, workerId);
  }

  reportDemand(endpointId: string, requests: number): void {
    if (requests === 0) this.#demand.delete(endpointId);
    else this.#demand.set(endpointId, requests);
    if (this.#deps.isLeading()) this.#deps.leading.reportDemand(endpointId, requests);
    else this.#schedule(endpointId);
  }

  reportActivity(endpointId: string, workerId: string, inFlight: number): void {
    this.#deps.leading.reportActivity(endpointId, workerId, inFlight);
    if (!this.#deps.isLeading()) this.#schedule(endpointId);
  }

  async waitForChange(endpointId: string, milliseconds: number, signal: AbortSignal): Promise<void> {
    const { leading, mirror } = this.#deps;
    const stop = new AbortController();
    const either = AbortSignal.any([signal, stop.signal]);
    await Promise.race([
      leading.waitForChange(endpointId, milliseconds, either),
      mirror.changes.waitForNext(endpointId, milliseconds, either).changed,
    ]);
    stop.abort();
  }

  /** Once per turn of the event loop, however many requests come and go. */
  #schedule(endpointId: string): void {
    if (this.#scheduled.has(endpointId)) return;
    this.#scheduled.add(endpointId);
    setImmediate(() => {
      this.#scheduled.delete(endpointId);
      const { isLeading, leading, requests, publishDemand } = this.#deps;
      const wanted = this.#demand.get(endpointId) ?? 0;
      if (isLeading()) leading.reportDemand(endpointId, wanted);
      else publishDemand(endpointId, { requests: wanted, inFlight: requests.ofEndpoint(endpointId) });
    });
  }
}
