import { createHash } from 'node:crypto';
import type { Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { lstat, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { pack } from 'tar-stream';
import type { Headers, Pack } from 'tar-stream';
import { readEntryNames } from '../entry-names.ts';

const READ_BYTES = 256 * 1024;
const PADDING_BYTES = 64 * 1024;

export interface PackedEntry {
  name: string;
  type: 'file' | 'link' | 'folder';
  size: number;
  /** Of the content; of a link, of its target. */
  sha256: string;
}

export interface PackOptions {
  onBytes?(count: number): void;
  /** Called for each entry when it is in the archive. With it, checksums are computed. */
  onEntry?(entry: PackedEntry): void;
  /** A file that is added at the end. */
  lastFile?(): { name: string; content: string };
}

/**
 * A tar archive of the file, symbolic link or folder at a path, under another name. Sockets and
 * devices are left out, and so are files whose names are not valid UTF-8.
 */
export function packTree(
  path: string,
  name: string,
  onBytes?: (count: number) => void,
): AsyncGenerator<Uint8Array> {
  return packTrees([{ path, name }], onBytes === undefined ? {} : { onBytes });
}

/** Several of them in one archive. */
export async function* packTrees(
  trees: readonly { path: string; name: string }[],
  options: PackOptions = {},
): AsyncGenerator<Uint8Array> {
  const archive = pack();
  const addAll = async (): Promise<void> => {
    for (const { path, name } of trees) await addTree(archive, path, name, options);
    const last = options.lastFile?.();
    if (last !== undefined) await addText(archive, last.name, last.content);
  };
  const written = addAll().then(
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

async function addTree(archive: Pack, path: string, name: string, options: PackOptions): Promise<void> {
  const found = await lstat(path);
  // The file type stays in the mode: tar-stream replaces a mode of 0 by its default.
  const header = { name, mode: found.mode, mtime: found.mtime };
  if (found.isSymbolicLink()) {
    const linkname = await readlink(path);
    await addEntry(archive, { ...header, type: 'symlink', linkname });
    options.onEntry?.({ name, type: 'link', size: 0, sha256: sha256(linkname) });
  }
  if (found.isFile()) {
    const sink = archive.entry({ ...header, type: 'file', size: found.size });
    const hash = options.onEntry && createHash('sha256');
    const content = fileContent(path, found.size, hash, options.onBytes);
    await pipeline(content, sink as unknown as NodeJS.WritableStream);
    if (hash !== undefined)
      options.onEntry?.({ name, type: 'file', size: found.size, sha256: hash.digest('hex') });
  }
  if (!found.isDirectory()) return;
  await addEntry(archive, { ...header, name: `${name}/`, type: 'directory' });
  options.onEntry?.({ name, type: 'folder', size: 0, sha256: '' });
  for (const child of (await readEntryNames(path)).names)
    await addTree(archive, join(path, child), `${name}/${child}`, options);
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function addText(archive: Pack, name: string, content: string): Promise<void> {
  return new Promise((resolve, reject) => {
    archive.entry({ name, mode: 0o100600 }, content, (error) => (error ? reject(error) : resolve()));
  });
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
  hash: Hash | undefined,
  onBytes: ((count: number) => void) | undefined,
): AsyncGenerator<Uint8Array> {
  let left = size;
  if (size > 0) {
    for await (const piece of createReadStream(path, {
      end: size - 1,
      highWaterMark: READ_BYTES,
    }) as AsyncIterable<Buffer>) {
      left -= piece.length;
      onBytes?.(piece.length);
      hash?.update(piece);
      yield piece;
    }
  }
  for (; left > 0; left -= Math.min(left, PADDING_BYTES)) {
    const padding = Buffer.alloc(Math.min(left, PADDING_BYTES));
    hash?.update(padding);
    yield padding;
  }
}
