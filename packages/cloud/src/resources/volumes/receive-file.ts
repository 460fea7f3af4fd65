import type { BigIntStats } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { BerthError } from '../../support/errors.ts';
import { syncInTurn } from '../../support/file-syncs.ts';
import { StreamChecksums } from '../../support/stream-checksums.ts';
import { createDirectory } from './volume-directory.ts';

/** Chunks of a stream are buffered up to this many bytes before they are written. */
const WRITE_BUFFER_BYTES = 1024 ** 2;

/** A completely received file that is on disk, at a temporary path. */
export interface ReceivedFile {
  path: string;
  /** MD5 of the content, in hex. */
  md5: string;
  stats: BigIntStats;
}

/**
 * Writes a stream to a temporary file. The file is on disk when this resolves. If the stream fails or has
 * another length than announced, the file is deleted.
 */
export async function receiveFile(
  path: string,
  bytes: AsyncIterable<Uint8Array>,
  length: number,
): Promise<ReceivedFile> {
  await createDirectory(dirname(path));
  const handle = await open(path, 'wx', 0o644);
  const checksums = new StreamChecksums(['md5']);
  try {
    const written = await writeAll(handle, bytes, length, checksums);
    if (written !== length)
      throw new BerthError('malformed', `the body ended after ${written} of ${length} bytes`);
    const [[md5 = Buffer.alloc(0)]] = await Promise.all([checksums.digests(), syncInTurn(handle)]);
    return { path, md5: md5.toString('hex'), stats: await handle.stat({ bigint: true }) };
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    checksums.close();
    await handle.close();
  }
}

async function writeAll(
  handle: FileHandle,
  bytes: AsyncIterable<Uint8Array>,
  length: number,
  checksums: StreamChecksums,
): Promise<number> {
  let total = 0;
  let buffered: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of bytes) {
    if (chunk.length === 0) continue;
    total += chunk.length;
    if (total > length)
      throw new BerthError('malformed', `the body is longer than the ${length} bytes that were announced`);
    await checksums.update(chunk);
    buffered.push(chunk);
    size += chunk.length;
    if (size < WRITE_BUFFER_BYTES) continue;
    await writeChunks(handle, buffered, size);
    buffered = [];
    size = 0;
  }
  if (size > 0) await writeChunks(handle, buffered, size);
  return total;
}

async function writeChunks(handle: FileHandle, chunks: Uint8Array[], size: number): Promise<void> {
  const { bytesWritten } = await handle.writev(chunks);
  if (bytesWritten === size) return;
  // A write can be partial, after a signal or on a nearly full disk: write the rest.
  const rest = Buffer.concat(chunks).subarray(bytesWritten);
  await handle.writeFile(rest);
}
