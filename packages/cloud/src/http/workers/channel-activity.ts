import { PairMap } from '../../support/pair-map.ts';

/** When each worker was last heard on a channel, whichever of them: it may have more than one. By time that cannot be set. */
export class ChannelActivity {
  readonly #heardAt = new PairMap<string, string, number>();

  /** A worker says something. Answers when. */
  record(endpointId: string, workerId: string): number {
    const now = performance.now();
    this.#heardAt.set(endpointId, workerId, now);
    return now;
  }

  /** Undefined where none of its channels has said anything since one of them was closed. */
  lastHeardAt(endpointId: string, workerId: string): number | undefined {
    return this.#heardAt.get(endpointId, workerId);
  }

  /** A channel of it was closed. What others say is noted when they say it. */
  forget(endpointId: string, workerId: string): void {
    this.#heardAt.delete(endpointId, workerId);
  }
}
