import { createWriteStream } from 'node:fs';
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { temporaryName } from '../../support/temporary-name.ts';
import type { CopyProgress } from '../copy-progress.ts';
import type { VolumeBucket, RemoteFile } from './volume-bucket.ts';
import { withRetries } from './transfer-retry.ts';

/** Downloads a file under a temporary name until it is complete. An interrupted download is resumed. */
export async function downloadFile(
  bucket: VolumeBucket,
  file: RemoteFile,
  path: string,
  progress: CopyProgress,
): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const unfinished = join(dirname(path), temporaryName(basename(path), `${file.etag}.part`));
  const had = await sizeOf(unfinished);
  if (had > file.size) await rm(unfinished);
  else progress.bytes(had);
  await withRetries(async () => {
    const from = await sizeOf(unfinished);
    if (from === file.size && from > 0) return;
    const content = Readable.fromWeb(
      (await bucket.get(file, from)) as Parameters<typeof Readable.fromWeb>[0],
    );
    content.on('data', (piece: Buffer) => progress.bytes(piece.length));
    await pipeline(content, createWriteStream(unfinished, { flags: 'a' }));
  });
  await rename(unfinished, path);
}

async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}
