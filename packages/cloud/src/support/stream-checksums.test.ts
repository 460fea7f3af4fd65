import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, describe, test } from 'node:test';
import { crc32 } from 'node:zlib';
import { endChecksumThread, StreamChecksums } from './stream-checksums.ts';

const MEGABYTE = 1024 ** 2;

async function checksumsOf(pieces: readonly Uint8Array[]): Promise<string[]> {
  const checksums = new StreamChecksums(['md5', 'sha256', 'crc32']);
  for (const piece of pieces) await checksums.update(piece);
  return (await checksums.digests()).map((digest) => digest.toString('hex'));
}

describe('checksums of a stream', () => {
  after(endChecksumThread);

  test('are the same for a short and a long one, whatever its pieces are', async () => {
    for (const size of [0, 1, MEGABYTE - 1, MEGABYTE, 3 * MEGABYTE + 17]) {
      const bytes = randomBytes(size);
      const pieces = Array.from({ length: Math.ceil(size / 65_537) }, (_, index) =>
        bytes.subarray(index * 65_537, (index + 1) * 65_537),
      );
      assert.deepEqual(
        await checksumsOf(pieces),
        [
          createHash('md5').update(bytes).digest('hex'),
          createHash('sha256').update(bytes).digest('hex'),
          crc32(bytes).toString(16).padStart(8, '0'),
        ],
        `${size} bytes`,
      );
    }
  });

  test('of a long one are computed beside everything else, and the bytes stay with the caller', async () => {
    const bytes = Buffer.alloc(16 * MEGABYTE, 'x');
    let turns = 0;
    let isOver = false;
    const computed = checksumsOf([bytes]).finally(() => (isOver = true));
    while (!isOver) {
      await new Promise((resolve) => setImmediate(resolve));
      turns += 1;
    }
    await computed;
    // Computed here, it would have been over in the first turns.
    assert.ok(turns > 20, `${turns} turns`);
    assert.equal(bytes.at(-1), 'x'.charCodeAt(0));
  });

  test('a stream is refused when its thread ends, and the next one gets another', async () => {
    const broken = new StreamChecksums(['md5']);
    await broken.update(Buffer.alloc(MEGABYTE));
    await endChecksumThread();
    await assert.rejects(broken.digests(), { code: 'unavailable' });
    const next = new StreamChecksums(['md5']);
    await next.update(Buffer.alloc(MEGABYTE));
    next.close();
    assert.equal((await checksumsOf([Buffer.alloc(MEGABYTE)])).length, 3);
  });
});
