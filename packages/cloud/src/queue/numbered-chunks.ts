import type { NewChunk, ChunkPosition } from '../domain/job-records.ts';

/** What a worker streamed under a number of its own; more than one chunk where it was cut. */
export interface NumberedChunk {
  /** Counts 1, 2, 3 … within one lease. */
  number: number;
  texts: readonly string[];
}

/** What of it is new. `missing` is the number that should have come first, where one was left out. */
interface UnstoredChunks {
  chunks: NewChunk[];
  missing?: number;
}

/**
 * A worker says again what was not acknowledged, in the same order and under the same numbers. So
 * whatever has a number that was kept is a repeat, and what is new follows the last one without a gap.
 */
export function unstoredChunks(said: readonly NumberedChunk[], end: ChunkPosition): UnstoredChunks {
  const chunks: NewChunk[] = [];
  let last = end.workerNumber;
  for (const { number, texts } of said) {
    if (number <= last) continue;
    if (number !== last + 1) return { chunks: [], missing: last + 1 };
    chunks.push(...texts.map((text) => ({ text, workerNumber: number })));
    last = number;
  }
  return { chunks };
}

/** The same for one who sends each until it is accepted or given up: what is missing then does not come any more. */
export function unstoredChunkWithGaps({ number, texts }: NumberedChunk, end: ChunkPosition): NewChunk[] {
  return number <= end.workerNumber ? [] : texts.map((text) => ({ text, workerNumber: number }));
}
