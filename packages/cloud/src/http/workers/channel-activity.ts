import { PairMap } from '../../support/pair-map.ts';

/** When each worker last sent something on any of its channels, by a monotonic clock. */
export class ChannelActivity {
  readonly #heardAt = new PairMap<string, string, number>();

  /** A worker has sent something. Returns the time. */
  record(endpointId: string, workerId: string): number {
    const now = performance.now();
    this.#heardAt.set(endpointId, workerId, now);
    return now;
  }

  /** Undefined if none of its channels has sent anything since one of them was closed. */
  lastHeardAt(endpointId: string, workerId: string): number | undefined {
    return this.#heardAt.get(endpointId, workerId);
  }

  /** One of its channels was closed. Its other channels are recorded when they send again. */
  forget(endpointId: string, workerId: string): void {
    this.#heardAt.delete(endpointId, workerId);
  }
}
