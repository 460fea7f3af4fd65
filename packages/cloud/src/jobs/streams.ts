import type { Job } from '../store/job-records.ts';
import type { Chunk, JobStore, NewChunk, StreamEnd } from '../store/jobs.ts';
import { BerthError } from '../support/errors.ts';
import { unkept, unkeptInSteps } from './numbered-chunks.ts';
import type { NumberedChunk } from './numbered-chunks.ts';
import { persist } from './persist.ts';
import { sameAttempt } from './same-attempt.ts';
import * as transitions from './transitions.ts';
import type { Holder } from './transitions.ts';

export interface StreamsParts {
  store: Pick<JobStore, 'appendChunks' | 'chunks' | 'change'>;
  /** A worker has something to say about a job, kept or not. */
  onHeard(endpointId: string, workerId: string, seq: number): void;
  /** There are more chunks than before. */
  onGrown(endpointId: string, seq: number): void;
}

/** What jobs stream: chunks that the worker that holds a job adds, and that readers are given in order. */
export class Streams {
  readonly #parts: StreamsParts;

  constructor(parts: StreamsParts) {
    this.#parts = parts;
  }

  /** Chunks after number `after`, in order, together at most `bytes` large but at least one. */
  read(endpointId: string, seq: number, after: number, bytes: number): Promise<Chunk[]> {
    return this.#parts.store.chunks(endpointId, seq, after, bytes);
  }

  /** Marks chunks as handed out by the stream; false where another reader was faster, or the job is tried anew. */
  async drainTo(job: Job, number: number): Promise<boolean> {
    const done = await this.#parts.store.change(job.endpointId, job.seq, (current) =>
      transitions.drain(current, job, number),
    );
    return done?.changed ?? false;
  }

  /** Chunks of a worker that does not number them. */
  async append(endpointId: string, seq: number, holder: Holder, chunks: string[]): Promise<void> {
    const { store, onHeard, onGrown } = this.#parts;
    onHeard(endpointId, holder.workerId, seq);
    let before: number | undefined;
    let found: Job | undefined;
    const kept = await persist(async () => {
      const tried = found;
      // A try that failed may have been kept all the same, and chunks are not for keeping twice.
      if (
        before !== undefined &&
        holdsInOrder(await store.chunks(endpointId, seq, before, Number.MAX_SAFE_INTEGER), chunks)
      )
        return true;
      const end = await store.appendChunks(endpointId, seq, (job, { number, workerNumber }) => {
        if (!transitions.holds(job, sameAttempt(holder, tried))) return undefined;
        found ??= job;
        before ??= number;
        return chunks.map((text) => ({ text, workerNumber }));
      });
      return end !== undefined;
    });
    if (kept) onGrown(endpointId, seq);
  }

  /** Keeps what was not kept before. Fails where a number was left out; from whoever does not hold the job, nothing is kept. */
  async appendNumbered(
    endpointId: string,
    seq: number,
    holder: Holder,
    said: readonly NumberedChunk[],
  ): Promise<void> {
    let missing: number | undefined;
    await this.#appendNew(endpointId, seq, holder, (end) => {
      const news = unkept(said, end);
      missing = news.missing;
      return news.chunks;
    });
    if (missing !== undefined)
      throw new BerthError('state', `chunk ${missing} is missing before those that came`);
  }

  /** The same for a chunk that is sent until it is accepted or given up: numbers may be left out. */
  appendNumberedInSteps(endpointId: string, seq: number, holder: Holder, said: NumberedChunk): Promise<void> {
    return this.#appendNew(endpointId, seq, holder, (end) => unkeptInSteps(said, end));
  }

  /** A try that failed and was kept all the same is seen by its numbers. */
  async #appendNew(
    endpointId: string,
    seq: number,
    holder: Holder,
    news: (end: StreamEnd) => NewChunk[],
  ): Promise<void> {
    const { store, onHeard, onGrown } = this.#parts;
    onHeard(endpointId, holder.workerId, seq);
    const end = await persist(() =>
      store.appendChunks(endpointId, seq, (job, before) =>
        transitions.holds(job, holder) ? news(before) : undefined,
      ),
    );
    if (end !== undefined) onGrown(endpointId, seq);
  }
}

function holdsInOrder(kept: readonly Chunk[], wanted: readonly string[]): boolean {
  return kept.some((_, from) => wanted.every((text, index) => kept[from + index]?.text === text));
}
