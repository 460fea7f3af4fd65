import { createHash } from 'node:crypto';
import type { BigIntStats } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { BerthError } from '../../support/errors.ts';
import { createDirectory } from './volume-directory.ts';

/** Pieces of a stream are gathered up to this many bytes before they are written. */
const WRITE_BUFFER_BYTES = 1024 ** 2;

/** A file that arrived whole and lies aside, on disk. */
export interface ReceivedFile {
  path: string;
  /** Of the content, in hex. */
  md5: string;
  stats: BigIntStats;
}

/**
 * Writes a stream to a file aside. It is on disk when this resolves; where the stream fails, or is
 * not as long as was said, nothing of it is left.
 */
export async function receiveFile(
  path: string,
  bytes: AsyncIterable<Uint8Array>,
  length: number,
): Promise<ReceivedFile> {
  await createDirectory(dirname(path));
  const handle = await open(path, 'wx', 0o644);
  try {
    const md5 = createHash('md5');
    const written = await writeAll(handle, bytes, length, (piece) => md5.update(piece));
    if (written !== length)
      throw new BerthError('malformed', `the body ended after ${written} of ${length} bytes`);
    await handle.sync();
    return { path, md5: md5.digest('hex'), stats: await handle.stat({ bigint: true }) };
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}

async function writeAll(
  handle: FileHandle,
  bytes: AsyncIterable<Uint8Array>,
  length: number,
  each: (piece: Uint8Array) => void,
): Promise<number> {
  let total = 0;
  let gathered: Uint8Array[] = [];
  let size = 0;
  for await (const piece of bytes) {
    if (piece.length === 0) continue;
    total += piece.length;
    if (total > length)
      throw new BerthError('malformed', `the body is longer than the ${length} bytes that were announced`);
    each(piece);
    gathered.push(piece);
    size += piece.length;
    if (size < WRITE_BUFFER_BYTES) continue;
    await writeChunks(handle, gathered, size);
    gathered = [];
    size = 0;
  }
  if (size > 0) await writeChunks(handle, gathered, size);
  return total;
}

async function writeChunks(handle: FileHandle, pieces: Uint8Array[], size: number): Promise<void> {
  const { bytesWritten } = await handle.writev(pieces);
  if (bytesWritten === size) return;
  // A write may be cut short, by a signal or a disk that is nearly full; the rest goes one by one.
  const rest = Buffer.concat(pieces).subarray(bytesWritten);
  await handle.writeFile(rest);
}
