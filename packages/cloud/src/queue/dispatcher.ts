import type { CancelSignal } from '../support/cancel-signal.ts';
import { EndpointDispatcher } from './endpoint-dispatcher.ts';
import type { DispatcherDeps } from './endpoint-dispatcher.ts';
import type { TakenJob } from '../domain/job-records.ts';

/** Dispatches queued jobs to waiting workers, separately for each endpoint. */
export class Dispatcher {
  readonly #deps: DispatcherDeps;
  readonly #endpoints = new Map<string, EndpointDispatcher>();
  #closed = false;

  constructor(deps: DispatcherDeps) {
    this.#deps = deps;
  }

  /**
   * Waits for up to `room` jobs. Resolves to none when the time is over, the request is aborted, or the wait
   * is released.
   */
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

  /** The endpoint may have new jobs. */
  wake(endpointId: string): void {
    this.#endpoints.get(endpointId)?.wake();
  }

  wakeAll(): void {
    for (const endpoint of this.#endpoints.values()) endpoint.wake();
  }

  /** Ends the waits of one worker without jobs. */
  endPendingTakes(endpointId: string, workerId: string): void {
    this.#endpoints.get(endpointId)?.endPendingTakes((waiting) => waiting === workerId);
  }

  /** The endpoint was deleted: ends all of its waits. */
  removeEndpoint(endpointId: string): void {
    this.#endpoints.get(endpointId)?.endPendingTakes(() => true);
    this.#endpoints.delete(endpointId);
  }

  /** Ends all waits. */
  close(): void {
    this.#closed = true;
    for (const endpoint of this.#endpoints.values()) endpoint.endPendingTakes(() => true);
  }
}
