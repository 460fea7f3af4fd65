import type { Upstream, WorkerPool } from '../../domain/endpoints/worker-pool.ts';
import type { FollowerPool } from './follower-pool.ts';

/** The workers of load balancing endpoints, each with the shard of its endpoint. */
export class ShardedPool implements WorkerPool {
  readonly #of: (endpointId: string) => FollowerPool;

  constructor(of: (endpointId: string) => FollowerPool) {
    this.#of = of;
  }

  ready(endpointId: string): Upstream[] {
    return this.#of(endpointId).ready(endpointId);
  }

  exists(endpointId: string, workerId: string): boolean {
    return this.#of(endpointId).exists(endpointId, workerId);
  }

  resume(endpointId: string, workerId: string): Promise<boolean> {
    return this.#of(endpointId).resume(endpointId, workerId);
  }

  reportDemand(endpointId: string, requests: number): void {
    this.#of(endpointId).reportDemand(endpointId, requests);
  }

  reportActivity(endpointId: string, workerId: string, inFlight: number): void {
    this.#of(endpointId).reportActivity(endpointId, workerId, inFlight);
  }

  waitForChange(endpointId: string, milliseconds: number, signal: AbortSignal): Promise<void> {
    return this.#of(endpointId).waitForChange(endpointId, milliseconds, signal);
  }
}
