import { createHash } from 'node:crypto';
import type { Hash } from 'node:crypto';
import { constants } from 'node:fs';
import { lstat, open, readlink } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { pack } from 'tar-stream';
import type { Headers, Pack } from 'tar-stream';
import { DirectoryHandle, isMissingPathError } from '../directory-handle.ts';
import { readEntryNames } from '../entry-names.ts';
import { checkOwner } from './tar-owner.ts';

const READ_BYTES = 256 * 1024;
const PADDING_BYTES = 64 * 1024;
/** Each folder on the way down is held open. */
const MAX_DEPTH = 200;
/** A pipe that has no writer is not waited for. */
const OPEN_FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

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
  /** Only files of this user are packed; another one fails. */
  ownerUid?: number | undefined;
}

/**
 * A tar archive of the file, symbolic link or folder at a path, under another name. Sockets and devices are
 * left out, and so are files whose names are not valid UTF-8. No symbolic link is followed, even if one
 * replaces a folder meanwhile.
 */
export function packTree(
  path: string,
  name: string,
  onBytes?: (count: number) => void,
): AsyncGenerator<Uint8Array> {
  return packTrees([{ path, name }], onBytes === undefined ? {} : { onBytes });
}

/** Several of them in one archive. */
export function packTrees(
  trees: readonly { path: string; name: string }[],
  options: PackOptions = {},
): AsyncGenerator<Uint8Array> {
  return packAll(async (archive) => {
    for (const { path, name } of trees) {
      const folder = await DirectoryHandle.open(dirname(path));
      try {
        await addTree(archive, folder, basename(path), name, options, 0);
      } finally {
        await folder.close();
      }
    }
    const last = options.lastFile?.();
    if (last !== undefined) await addText(archive, last.name, last.content);
  });
}

/** A tar archive of an entry of an open folder. */
export function packEntry(
  folder: DirectoryHandle,
  entry: string,
  name: string,
  options: PackOptions = {},
): AsyncGenerator<Uint8Array> {
  return packAll((archive) => addTree(archive, folder, entry, name, options, 0));
}

async function* packAll(add: (archive: Pack) => Promise<void>): AsyncGenerator<Uint8Array> {
  const archive = pack();
  const written = add(archive).then(
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
  folder: DirectoryHandle,
  entry: string,
  name: string,
  options: PackOptions,
  depth: number,
): Promise<void> {
  if (depth > MAX_DEPTH) throw new Error(`${name} has more than ${MAX_DEPTH} folders above it`);
  const path = folder.pathOf(entry);
  const found = await lstat(path);
  // The file type stays in the mode: tar-stream replaces a mode of 0 by its default.
  const header = { name, mode: found.mode, mtime: found.mtime };
  if (found.isSymbolicLink()) {
    const linkname = await readlink(path);
    await addEntry(archive, { ...header, type: 'symlink', linkname });
    options.onEntry?.({ name, type: 'link', size: 0, sha256: sha256(linkname) });
  }
  if (found.isFile()) await addFile(archive, path, name, options);
  if (!found.isDirectory()) return;
  const child = await folder.openChild(entry);
  try {
    await addEntry(archive, { ...header, name: `${name}/`, type: 'directory' });
    options.onEntry?.({ name, type: 'folder', size: 0, sha256: '' });
    for (const below of (await readEntryNames(child.pathOf())).names)
      await skipIfGone(() => addTree(archive, child, below, `${name}/${below}`, options, depth + 1));
  } finally {
    await child.close();
  }
}

/** What was deleted or replaced since the folder was read is left out. */
async function skipIfGone(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!isMissingPathError(error)) throw error;
  }
}

async function addFile(archive: Pack, path: string, name: string, options: PackOptions): Promise<void> {
  const file = await open(path, OPEN_FILE);
  try {
    const { mode, mtime, size, uid } = await file.stat();
    checkOwner(name, uid, options.ownerUid);
    const sink = archive.entry({ name, mode, mtime, type: 'file', size });
    const hash = options.onEntry && createHash('sha256');
    const content = fileContent(file, size, hash, options.onBytes);
    await pipeline(content, sink as unknown as NodeJS.WritableStream);
    if (hash !== undefined) options.onEntry?.({ name, type: 'file', size, sha256: hash.digest('hex') });
  } finally {
    await file.close();
  }
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
  file: FileHandle,
  size: number,
  hash: Hash | undefined,
  onBytes: ((count: number) => void) | undefined,
): AsyncGenerator<Uint8Array> {
  let left = size;
  while (left > 0) {
    const buffer = Buffer.allocUnsafe(Math.min(left, READ_BYTES));
    const { bytesRead } = await file.read(buffer, 0, buffer.length);
    if (bytesRead === 0) break;
    const piece = buffer.subarray(0, bytesRead);
    left -= bytesRead;
    onBytes?.(bytesRead);
    hash?.update(piece);
    yield piece;
  }
  for (; left > 0; left -= Math.min(left, PADDING_BYTES)) {
    const padding = Buffer.alloc(Math.min(left, PADDING_BYTES));
    hash?.update(padding);
    yield padding;
  }
}
