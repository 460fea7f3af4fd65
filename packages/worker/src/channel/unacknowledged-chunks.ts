import type { ChannelJob, NumberedChunk } from './channel-job.ts';

/**
 * How many characters of chunks may be unacknowledged. Beyond that generators wait; each can exceed the limit
 * by at most one chunk.
 */
export const MAX_UNACKNOWLEDGED_LENGTH = 8 * 1024 * 1024;
/** Overhead of an entry besides its text. */
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

/** Chunks that the server has not acknowledged yet, in order for each job. */
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

  /** All chunks of the job up to this number are stored. */
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

  /** Removes and returns the chunks of a job; the caller sends them from now on. */
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

  /** Since when the oldest chunk waits. */
  get since(): number | undefined {
    return this.#streams.size === 0 ? undefined : Math.min(...this.streams().map(({ oldestAt }) => oldestAt));
  }
}

function sizeOf({ body }: NumberedChunk): number {
  return body.length + OVERHEAD;
}
