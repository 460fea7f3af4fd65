import type { Job, Chunk, NewChunk, ChunkPosition } from '../domain/job-records.ts';
import type { JobStore } from '../store/job-store.ts';
import { BerthError } from '../support/errors.ts';
import { unstoredChunks, unstoredChunkWithGaps } from './numbered-chunks.ts';
import type { NumberedChunk } from './numbered-chunks.ts';
import { withStoreRetries } from './store-retry.ts';
import { pinToAttempt } from './attempt-holder.ts';
import * as transitions from '../domain/job-transitions.ts';
import type { LeaseHolder } from '../domain/job-transitions.ts';

export interface JobStreamsDeps {
  store: Pick<JobStore, 'appendChunks' | 'listChunks' | 'change'>;
  /** A worker reported something about a job, whether it is stored or not. */
  onWorkerActivity(endpointId: string, holder: LeaseHolder, seq: number): void;
  /** There are new chunks. */
  onAppended(endpointId: string, seq: number): void;
}

/** Job streams: chunks that the worker that holds a job appends and that readers get in order. */
export class JobStreams {
  readonly #deps: JobStreamsDeps;

  constructor(deps: JobStreamsDeps) {
    this.#deps = deps;
  }

  /** Chunks after number `after`, in order, together at most `bytes` large but at least one. */
  read(endpointId: string, seq: number, after: number, bytes: number): Promise<Chunk[]> {
    return this.#deps.store.listChunks(endpointId, seq, after, bytes);
  }

  /** Marks chunks as read by the stream; false where another reader was faster, or the job is retried. */
  async markDrained(job: Job, number: number): Promise<boolean> {
    const done = await this.#deps.store.change(job.endpointId, job.seq, (current) =>
      transitions.drain(current, job, number),
    );
    return done?.changed ?? false;
  }

  /** Appends chunks of a worker that does not number them. */
  async append(endpointId: string, seq: number, holder: LeaseHolder, chunks: string[]): Promise<void> {
    const { store, onWorkerActivity, onAppended } = this.#deps;
    onWorkerActivity(endpointId, holder, seq);
    let before: number | undefined;
    let found: Job | undefined;
    const kept = await withStoreRetries(async () => {
      const tried = found;
      // A write that failed may have been committed, and chunks must not be stored twice.
      if (
        before !== undefined &&
        holdsInOrder(await store.listChunks(endpointId, seq, before, Number.MAX_SAFE_INTEGER), chunks)
      )
        return true;
      const end = await store.appendChunks(endpointId, seq, (job, { number, workerNumber }) => {
        if (!transitions.holdsLease(job, pinToAttempt(holder, tried))) return undefined;
        found ??= job;
        before ??= number;
        return chunks.map((text) => ({ text, workerNumber }));
      });
      return end !== undefined;
    });
    if (kept) onAppended(endpointId, seq);
  }

  /**
   * Appends the chunks that are not stored yet. Fails where a number is missing; nothing is stored for a
   * worker that does not hold the job.
   */
  async appendNumbered(
    endpointId: string,
    seq: number,
    holder: LeaseHolder,
    received: readonly NumberedChunk[],
  ): Promise<void> {
    let missing: number | undefined;
    await this.#appendNew(endpointId, seq, holder, (end) => {
      const unstored = unstoredChunks(received, end);
      missing = unstored.missing;
      return unstored.chunks;
    });
    if (missing !== undefined)
      throw new BerthError('state', `chunk ${missing} is missing; send it before later ones`);
  }

  /** The same for chunks that are each sent until accepted or dropped: numbers may be missing. */
  appendNumberedWithGaps(
    endpointId: string,
    seq: number,
    holder: LeaseHolder,
    received: NumberedChunk,
  ): Promise<void> {
    return this.#appendNew(endpointId, seq, holder, (end) => unstoredChunkWithGaps(received, end));
  }

  /** A write that failed and was committed anyway is recognized by its numbers. */
  async #appendNew(
    endpointId: string,
    seq: number,
    holder: LeaseHolder,
    unstored: (end: ChunkPosition) => NewChunk[],
  ): Promise<void> {
    const { store, onWorkerActivity, onAppended } = this.#deps;
    onWorkerActivity(endpointId, holder, seq);
    const end = await withStoreRetries(() =>
      store.appendChunks(endpointId, seq, (job, before) =>
        transitions.holdsLease(job, holder) ? unstored(before) : undefined,
      ),
    );
    if (end !== undefined) onAppended(endpointId, seq);
  }
}

function holdsInOrder(kept: readonly Chunk[], wanted: readonly string[]): boolean {
  return kept.some((_, from) => wanted.every((text, index) => kept[from + index]?.text === text));
}
