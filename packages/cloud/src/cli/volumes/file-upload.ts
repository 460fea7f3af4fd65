import { createHash } from 'node:crypto';
import { open, readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { MAX_UPLOAD_PARTS } from '../../domain/limits.ts';
import type { CopyProgress } from '../copy-progress.ts';
import type { VolumeBucket } from './volume-bucket.ts';
import { forEachConcurrent, withRetries } from './transfer-retry.ts';

const MB = 1024 ** 2;
/** Larger files are uploaded in parts, so that an interrupted upload can be resumed. */
const SINGLE_PUT_MAX_BYTES = 16 * MB;
const MIN_PART_BYTES = 16 * MB;
const PART_CONCURRENCY = 3;

/**
 * Uploads a file. An interrupted upload is resumed: parts whose content is already there are not sent again.
 */
export async function uploadFile(
  bucket: VolumeBucket,
  path: string,
  size: number,
  key: string,
  progress: CopyProgress,
): Promise<void> {
  if (size <= SINGLE_PUT_MAX_BYTES) {
    const content = await readFile(path);
    await withRetries(() => bucket.put(key, content));
    progress.bytes(content.length);
    return;
  }
  const partSize = Math.max(MIN_PART_BYTES, Math.ceil(size / MAX_UPLOAD_PARTS / MB) * MB);
  const source = sourceOf(path);
  const begun = await bucket.findUpload(key, source);
  const there = new Map(
    (begun === undefined ? [] : await bucket.listParts(key, begun)).map((part) => [part.number, part]),
  );
  const uploadId = begun ?? (await bucket.createUpload(key, source));
  const numbers = Array.from({ length: Math.ceil(size / partSize) }, (_, index) => index + 1);
  const etags = new Map<number, string>();
  const file = await open(path);
  try {
    await forEachConcurrent(numbers, PART_CONCURRENCY, async (number) => {
      const length = Math.min(partSize, size - (number - 1) * partSize);
      const content = Buffer.alloc(length);
      const { bytesRead } = await file.read(content, 0, length, (number - 1) * partSize);
      const part = content.subarray(0, bytesRead);
      const known = there.get(number);
      const isThere =
        known?.size === part.length && known.etag === createHash('md5').update(part).digest('hex');
      etags.set(
        number,
        isThere ? known.etag : await withRetries(() => bucket.putPart(key, uploadId, number, part)),
      );
      progress.bytes(part.length);
    });
  } finally {
    await file.close();
  }
  await bucket.completeUpload(
    key,
    uploadId,
    numbers.map((number) => ({ number, etag: etags.get(number) ?? '' })),
  );
}

/** Identifies the uploads of this file, since others may upload to the same key at the same time. */
function sourceOf(path: string): string {
  return createHash('sha256')
    .update(JSON.stringify([hostname(), resolve(path)]))
    .digest('hex');
}
