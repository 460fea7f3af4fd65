import type { TakenJob } from '../store/jobs.ts';
import type { Departure } from './departure.ts';
import { EndpointHandOut } from './endpoint-hand-out.ts';
import type { HandOutParts } from './endpoint-hand-out.ts';

/** Brings waiting jobs to waiting workers, each endpoint by itself. */
export class HandOut {
  readonly #parts: HandOutParts;
  readonly #endpoints = new Map<string, EndpointHandOut>();
  #closed = false;

  constructor(parts: HandOutParts) {
    this.#parts = parts;
  }

  /** Waits for up to `room` jobs. Answers none when the time is over, the worker gives up, or it is released. */
  wait(
    endpointId: string,
    workerId: string,
    room: number,
    milliseconds: number,
    signal: Departure,
  ): Promise<TakenJob[]> {
    if (this.#closed) return Promise.resolve([]);
    let endpoint = this.#endpoints.get(endpointId);
    if (endpoint === undefined) {
      endpoint = new EndpointHandOut(this.#parts, endpointId);
      this.#endpoints.set(endpointId, endpoint);
    }
    return endpoint.wait(workerId, room, milliseconds, signal);
  }

  /** There may be something on this endpoint. */
  wake(endpointId: string): void {
    this.#endpoints.get(endpointId)?.wake();
  }

  wakeAll(): void {
    for (const endpoint of this.#endpoints.values()) endpoint.wake();
  }

  /** Ends the wait of one worker, with nothing. */
  release(endpointId: string, workerId: string): void {
    this.#endpoints.get(endpointId)?.release((waiting) => waiting === workerId);
  }

  /** The endpoint is gone, and nobody waits there any longer. */
  forget(endpointId: string): void {
    this.#endpoints.get(endpointId)?.release(() => true);
    this.#endpoints.delete(endpointId);
  }

  /** Lets everyone go who waits. */
  close(): void {
    this.#closed = true;
    for (const endpoint of this.#endpoints.values()) endpoint.release(() => true);
  }
}
