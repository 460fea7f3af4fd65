import { createHash } from 'node:crypto';
import { open, readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import type { Progress } from '../progress.ts';
import type { Bucket } from './bucket.ts';
import { inParallel, persistently } from './persistence.ts';

const MB = 1024 ** 2;
/** A larger file goes in parts, so that what has arrived need not be sent again. */
const LARGEST_AT_ONCE = 16 * MB;
const SMALLEST_PART = 16 * MB;
const MOST_PARTS = 10_000;
const PARTS_AT_ONCE = 3;

/** Sends a file. One that was broken off goes on where it was: parts that are there already, byte for byte, are not sent again. */
export async function uploadFile(
  bucket: Bucket,
  path: string,
  size: number,
  key: string,
  progress: Progress,
): Promise<void> {
  if (size <= LARGEST_AT_ONCE) {
    const content = await readFile(path);
    await persistently(() => bucket.put(key, content));
    progress.bytes(content.length);
    return;
  }
  const partSize = Math.max(SMALLEST_PART, Math.ceil(size / MOST_PARTS / MB) * MB);
  const source = sourceOf(path);
  const begun = await bucket.begun(key, source);
  const there = new Map(
    (begun === undefined ? [] : await bucket.parts(key, begun)).map((part) => [part.number, part]),
  );
  const uploadId = begun ?? (await bucket.begin(key, source));
  const numbers = Array.from({ length: Math.ceil(size / partSize) }, (_, index) => index + 1);
  const etags = new Map<number, string>();
  const file = await open(path);
  try {
    await inParallel(numbers, PARTS_AT_ONCE, async (number) => {
      const length = Math.min(partSize, size - (number - 1) * partSize);
      const content = Buffer.alloc(length);
      const { bytesRead } = await file.read(content, 0, length, (number - 1) * partSize);
      const part = content.subarray(0, bytesRead);
      const known = there.get(number);
      const isThere =
        known?.size === part.length && known.etag === createHash('md5').update(part).digest('hex');
      etags.set(
        number,
        isThere ? known.etag : await persistently(() => bucket.putPart(key, uploadId, number, part)),
      );
      progress.bytes(part.length);
    });
  } finally {
    await file.close();
  }
  await bucket.complete(
    key,
    uploadId,
    numbers.map((number) => ({ number, etag: etags.get(number) ?? '' })),
  );
}

/** Tells the uploads of this file from those of others, who may be sending the same key at this moment. */
function sourceOf(path: string): string {
  return createHash('sha256')
    .update(JSON.stringify([hostname(), resolve(path)]))
    .digest('hex');
}
