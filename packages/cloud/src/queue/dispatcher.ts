import type { CancelSignal } from '../support/cancel-signal.ts';
import { EndpointDispatcher } from './endpoint-dispatcher.ts';
import type { DispatcherDeps } from './endpoint-dispatcher.ts';
import type { TakenJob } from '../domain/job-records.ts';

/** Brings waiting jobs to waiting workers, each endpoint by itself. */
export class Dispatcher {
  readonly #deps: DispatcherDeps;
  readonly #endpoints = new Map<string, EndpointDispatcher>();
  #closed = false;

  constructor(deps: DispatcherDeps) {
    this.#deps = deps;
  }

  /** Waits for up to `room` jobs. Answers none when the time is over, the worker gives up, or it is released. */
  waitForJobs(
    endpointId: string,
    workerId: string,
    room: number,
    milliseconds: number,
    signal: CancelSignal,
  ): Promise<TakenJob[]> {
    if (this.#closed) return Promise.resolve([]);
    let endpoint = this.#endpoints.get(endpointId);
    if (endpoint === undefined) {
      endpoint = new EndpointDispatcher(this.#deps, endpointId);
      this.#endpoints.set(endpointId, endpoint);
    }
    return endpoint.waitForJobs(workerId, room, milliseconds, signal);
  }

  /** There may be something on this endpoint. */
  wake(endpointId: string): void {
    this.#endpoints.get(endpointId)?.wake();
  }

  wakeAll(): void {
    for (const endpoint of this.#endpoints.values()) endpoint.wake();
  }

  /** Ends the wait of one worker, with nothing. */
  endPendingTakes(endpointId: string, workerId: string): void {
    this.#endpoints.get(endpointId)?.endPendingTakes((waiting) => waiting === workerId);
  }

  /** The endpoint is gone, and nobody waits there any longer. */
  removeEndpoint(endpointId: string): void {
    this.#endpoints.get(endpointId)?.endPendingTakes(() => true);
    this.#endpoints.delete(endpointId);
  }

  /** Lets everyone go who waits. */
  close(): void {
    this.#closed = true;
    for (const endpoint of this.#endpoints.values()) endpoint.endPendingTakes(() => true);
  }
}
