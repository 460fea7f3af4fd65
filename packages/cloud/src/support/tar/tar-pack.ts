import { createReadStream } from 'node:fs';
import { lstat, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { pack } from 'tar-stream';
import type { Headers, Pack } from 'tar-stream';
import { readEntryNames } from '../entry-names.ts';

const READ_BYTES = 256 * 1024;
const PADDING_BYTES = 64 * 1024;

/**
 * A tar archive of the file, symbolic link or folder at a path, under another name. Sockets and
 * devices are left out, and so are files whose names are not valid UTF-8.
 */
export async function* packTree(
  path: string,
  name: string,
  onBytes: (count: number) => void = () => undefined,
): AsyncGenerator<Uint8Array> {
  const archive = pack();
  const written = addTree(archive, path, name, onBytes).then(
    () => archive.finalize(),
    (error: unknown) => archive.destroy(error as Error),
  );
  try {
    yield* archive as AsyncIterable<Uint8Array>;
  } finally {
    archive.destroy();
    await written;
  }
}

async function addTree(
  archive: Pack,
  path: string,
  name: string,
  onBytes: (count: number) => void,
): Promise<void> {
  const found = await lstat(path);
  // The file type stays in the mode: tar-stream replaces a mode of 0 by its default.
  const header = { name, mode: found.mode, mtime: found.mtime };
  if (found.isSymbolicLink())
    await addEntry(archive, { ...header, type: 'symlink', linkname: await readlink(path) });
  if (found.isFile()) {
    const sink = archive.entry({ ...header, type: 'file', size: found.size });
    await pipeline(fileContent(path, found.size, onBytes), sink as unknown as NodeJS.WritableStream);
  }
  if (!found.isDirectory()) return;
  await addEntry(archive, { ...header, name: `${name}/`, type: 'directory' });
  for (const child of (await readEntryNames(path)).names)
    await addTree(archive, join(path, child), `${name}/${child}`, onBytes);
}

function addEntry(archive: Pack, header: Headers): Promise<void> {
  return new Promise((resolve, reject) => {
    archive.entry(header, (error) => (error ? reject(error) : resolve()));
  });
}

/**
 * Exactly `size` bytes, as the header says, even if the file grows or shrinks meanwhile. A missing rest is
 * filled with zeros.
 */
async function* fileContent(
  path: string,
  size: number,
  onBytes: (count: number) => void,
): AsyncGenerator<Uint8Array> {
  let left = size;
  if (size > 0) {
    for await (const piece of createReadStream(path, {
      end: size - 1,
      highWaterMark: READ_BYTES,
    }) as AsyncIterable<Buffer>) {
      left -= piece.length;
      onBytes(piece.length);
      yield piece;
    }
  }
  for (; left > 0; left -= Math.min(left, PADDING_BYTES)) yield Buffer.alloc(Math.min(left, PADDING_BYTES));
}
