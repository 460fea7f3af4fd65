import type { NewChunk, ChunkPosition } from '../domain/job-records.ts';

/** What a worker streamed under one number; more than one chunk where it was split. */
export interface NumberedChunk {
  /** Counts 1, 2, 3 … within one lease. */
  number: number;
  texts: readonly string[];
}

/** The new chunks. `missing` is the number that should have come first, where one is missing. */
interface UnstoredChunks {
  chunks: NewChunk[];
  missing?: number;
}

/**
 * A worker resends unacknowledged chunks in the same order and with the same numbers. So a number that is
 * already stored is a repeat, and new chunks follow the last stored number without a gap.
 */
export function unstoredChunks(received: readonly NumberedChunk[], end: ChunkPosition): UnstoredChunks {
  const chunks: NewChunk[] = [];
  let last = end.workerNumber;
  for (const { number, texts } of received) {
    if (number <= last) continue;
    if (number !== last + 1) return { chunks: [], missing: last + 1 };
    chunks.push(...texts.map((text) => ({ text, workerNumber: number })));
    last = number;
  }
  return { chunks };
}

/**
 * The same for a sender that retries each chunk until it is accepted or dropped: a missing number never comes
 * later.
 */
export function unstoredChunkWithGaps({ number, texts }: NumberedChunk, end: ChunkPosition): NewChunk[] {
  return number <= end.workerNumber ? [] : texts.map((text) => ({ text, workerNumber: number }));
}
