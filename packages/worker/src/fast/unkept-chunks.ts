import type { FastDelivery } from './delivery.ts';

/** So many characters of chunks wait for acknowledgements. Beyond that generators wait too: each has brought at most one more. */
export const MOST_UNKEPT = 8 * 1024 * 1024;
/** What an entry takes besides its text. */
const OVERHEAD = 100;

export interface UnkeptChunk {
  number: number;
  body: string;
}

const NONE: readonly UnkeptChunk[] = [];

interface Stream {
  delivery: FastDelivery;
  chunks: UnkeptChunk[];
  /** Since when the first of them waits. */
  since: number;
  /** On how many connections the first of them was sent. */
  sent: number;
}

/** The chunks that were made and of which the server has not said that they are kept, each job's in order. */
export class UnkeptChunks {
  readonly #streams = new Map<string, Stream>();
  #size = 0;

  get full(): boolean {
    return this.#size >= MOST_UNKEPT;
  }

  add(delivery: FastDelivery, chunk: UnkeptChunk, sent: boolean): void {
    const stream = this.#streams.get(delivery.name);
    this.#size += sizeOf(chunk);
    if (stream !== undefined) stream.chunks.push(chunk);
    else
      this.#streams.set(delivery.name, { delivery, chunks: [chunk], since: Date.now(), sent: sent ? 1 : 0 });
  }

  /** Everything of the job up to a number is kept. */
  kept(name: string, upTo: number): void {
    const stream = this.#streams.get(name);
    if (stream === undefined) return;
    const left = stream.chunks.findIndex(({ number }) => number > upTo);
    if (left === 0) return;
    if (left === -1) this.remove(name);
    else {
      for (const chunk of stream.chunks.splice(0, left)) this.#size -= sizeOf(chunk);
      stream.since = Date.now();
      stream.sent = 1;
    }
  }

  /** The chunks of a job, which are somebody else's affair from now on. */
  remove(name: string): readonly UnkeptChunk[] {
    const stream = this.#streams.get(name);
    if (stream === undefined) return NONE;
    this.#streams.delete(name);
    for (const chunk of stream.chunks) this.#size -= sizeOf(chunk);
    return stream.chunks;
  }

  streams(): Stream[] {
    return [...this.#streams.values()];
  }

  /** Since when the oldest waits. */
  get since(): number | undefined {
    return this.#streams.size === 0 ? undefined : Math.min(...this.streams().map(({ since }) => since));
  }
}

function sizeOf({ body }: UnkeptChunk): number {
  return body.length + OVERHEAD;
}
