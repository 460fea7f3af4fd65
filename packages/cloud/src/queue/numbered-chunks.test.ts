import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { checkProperty, seed } from '../../../testing/src/property-testing.ts';
import { unstoredChunks, unstoredChunkWithGaps } from './numbered-chunks.ts';
import { type NewChunk, type ChunkPosition, positionAfter } from '../domain/job-records.ts';

/** Every third is split in two. */
const said = (number: number) => ({
  number,
  texts: number % 3 === 0 ? [`${number}a`, `${number}b`] : [`${number}`],
});
const from = (first: number, last: number) =>
  Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => said(first + index));
const texts = (chunks: readonly NewChunk[]): string[] => chunks.map(({ text }) => text);

describe('chunks that a worker streams with numbers', () => {
  test('are new after the last stored number', () => {
    assert.deepEqual(unstoredChunks(from(1, 3), { number: 0, workerNumber: 0 }), {
      chunks: [
        { text: '1', workerNumber: 1 },
        { text: '2', workerNumber: 2 },
        { text: '3a', workerNumber: 3 },
        { text: '3b', workerNumber: 3 },
      ],
    });
    assert.deepEqual(texts(unstoredChunks(from(1, 4), { number: 4, workerNumber: 3 }).chunks), ['4']);
    assert.deepEqual(unstoredChunks(from(1, 3), { number: 90, workerNumber: 70 }), { chunks: [] });
    assert.deepEqual(unstoredChunks([], { number: 1, workerNumber: 1 }), { chunks: [] });
  });

  test('are not stored where a number is missing, and the missing number is returned', () => {
    assert.deepEqual(unstoredChunks([said(2)], { number: 0, workerNumber: 0 }), { chunks: [], missing: 1 });
    assert.deepEqual(unstoredChunks([said(4), said(5), said(7)], { number: 3, workerNumber: 3 }), {
      chunks: [],
      missing: 6,
    });
    assert.deepEqual(unstoredChunks([said(5), said(4)], { number: 3, workerNumber: 3 }), {
      chunks: [],
      missing: 4,
    });
  });

  test('may skip numbers where each is sent until it is dropped', () => {
    assert.deepEqual(texts(unstoredChunkWithGaps(said(6), { number: 0, workerNumber: 4 })), ['6a', '6b']);
    assert.deepEqual(unstoredChunkWithGaps(said(4), { number: 0, workerNumber: 4 }), []);
  });

  test(`are stored once and in order, however often the last part is resent (seed ${seed})`, async () => {
    await checkProperty(
      fc.property(
        fc.array(fc.record({ back: fc.nat(20), more: fc.nat(20), together: fc.integer({ min: 1, max: 7 }) })),
        (connections) => {
          let end: ChunkPosition = { number: 0, workerNumber: 0 };
          const kept: NewChunk[] = [];
          for (const { back, more, together } of connections) {
            const first = Math.max(1, end.workerNumber + 1 - back);
            const all = from(first, end.workerNumber + more);
            for (let at = 0; at < all.length; at += together) {
              const { chunks, missing } = unstoredChunks(all.slice(at, at + together), end);
              assert.equal(missing, undefined);
              kept.push(...chunks);
              end = positionAfter(end, chunks);
            }
          }
          assert.deepEqual(
            texts(kept),
            from(1, end.workerNumber).flatMap((chunk) => chunk.texts),
          );
        },
      ),
    );
  });
});
