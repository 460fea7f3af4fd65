import type { ChannelJob, NumberedChunk } from './channel-job.ts';

/** So many characters of chunks wait for acknowledgements. Beyond that generators wait too: each has brought at most one more. */
export const MAX_UNACKNOWLEDGED_LENGTH = 8 * 1024 * 1024;
/** What an entry takes besides its text. */
const OVERHEAD = 100;

const NO_CHUNKS: readonly NumberedChunk[] = [];

interface ChunkStream {
  delivery: ChannelJob;
  chunks: NumberedChunk[];
  /** Since when the first of them waits. */
  oldestAt: number;
  /** On how many connections the first of them was sent. */
  connectionsTried: number;
}

/** The chunks that were made and of which the server has not said that they are kept, each job's in order. */
export class UnacknowledgedChunks {
  readonly #streams = new Map<string, ChunkStream>();
  #size = 0;

  get full(): boolean {
    return this.#size >= MAX_UNACKNOWLEDGED_LENGTH;
  }

  add(delivery: ChannelJob, chunk: NumberedChunk, sent: boolean): void {
    const stream = this.#streams.get(delivery.leaseName);
    this.#size += sizeOf(chunk);
    if (stream !== undefined) stream.chunks.push(chunk);
    else
      this.#streams.set(delivery.leaseName, {
        delivery,
        chunks: [chunk],
        oldestAt: Date.now(),
        connectionsTried: sent ? 1 : 0,
      });
  }

  /** Everything of the job up to a number is kept. */
  acknowledge(name: string, upTo: number): void {
    const stream = this.#streams.get(name);
    if (stream === undefined) return;
    const left = stream.chunks.findIndex(({ number }) => number > upTo);
    if (left === 0) return;
    if (left === -1) this.remove(name);
    else {
      for (const chunk of stream.chunks.splice(0, left)) this.#size -= sizeOf(chunk);
      stream.oldestAt = Date.now();
      stream.connectionsTried = 1;
    }
  }

  /** The chunks of a job, which are somebody else's affair from now on. */
  remove(name: string): readonly NumberedChunk[] {
    const stream = this.#streams.get(name);
    if (stream === undefined) return NO_CHUNKS;
    this.#streams.delete(name);
    for (const chunk of stream.chunks) this.#size -= sizeOf(chunk);
    return stream.chunks;
  }

  streams(): ChunkStream[] {
    return [...this.#streams.values()];
  }

  /** Since when the oldest waits. */
  get since(): number | undefined {
    return this.#streams.size === 0 ? undefined : Math.min(...this.streams().map(({ oldestAt }) => oldestAt));
  }
}

function sizeOf({ body }: NumberedChunk): number {
  return body.length + OVERHEAD;
}
