import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { extract } from 'tar-stream';
import type { Headers } from 'tar-stream';

/**
 * How much of an archive may precede an entry: its name and attributes, and the end of the entry
 * before. tar-stream keeps these in memory, whatever length the archive claims for them.
 */
const MAX_HEADER_BYTES = 1024 ** 2;
const BLOCK_BYTES = 512;

export class TarError extends Error {
  override readonly name = 'TarError';
}

export interface TarEntry {
  /** With slashes, without one at its end. */
  name: string;
  type: 'file' | 'folder' | 'link' | 'hard-link' | 'other';
  size: number;
  mode: number;
  /** Milliseconds since 1970. */
  modifiedAt: number;
  /** The target of a link. */
  target: string;
  /** The content of a file. What is not read is skipped. */
  content: AsyncIterable<Uint8Array>;
}

const ENTRY_TYPES: Partial<Record<NonNullable<Headers['type']>, TarEntry['type']>> = {
  file: 'file',
  'contiguous-file': 'file',
  link: 'hard-link',
  symlink: 'link',
  directory: 'folder',
};

/**
 * The entries of a tar archive. tar-stream parses it; what it does not check is checked here:
 * sizes, the length of headers, and whether the end of the archive has arrived.
 */
export async function* readTar(source: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry> {
  const parser = extract();
  let bytesRead = 0;
  let lastEntryEnd = 0;
  let sourceError: unknown;
  const input = async function* (): AsyncGenerator<Uint8Array> {
    try {
      for await (const piece of source) {
        if (bytesRead - lastEntryEnd > MAX_HEADER_BYTES)
          throw new TarError(`the archive has a header of more than ${MAX_HEADER_BYTES} bytes`);
        bytesRead += piece.length;
        yield piece;
      }
    } catch (error) {
      sourceError = error;
      throw error;
    }
  };
  const parsed = pipeline(Readable.from(input()), parser as unknown as NodeJS.WritableStream);
  // An error also ends the loop below.
  parsed.catch(() => undefined);
  const toTarError = (error: unknown): unknown => {
    if (error === sourceError || error instanceof TarError) return error;
    return new TarError(
      (error as Error).message === 'Unexpected end of data'
        ? 'the archive is incomplete'
        : 'this is not a tar archive, or it is damaged',
      { cause: error },
    );
  };
  const contentOf = async function* (entry: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    try {
      yield* entry;
    } catch (error) {
      throw toTarError(error);
    }
  };
  // Not a `for await` loop: on an error it would wait for the parser, which waits for its input.
  const entries = parser[Symbol.asyncIterator]();
  try {
    for (let next = await entries.next(); next.done !== true; next = await entries.next()) {
      const entry = next.value;
      const { header, offset } = entry as typeof entry & { offset: number };
      const {
        name,
        size = 0,
        mode = 0,
        mtime,
        linkname,
        pax,
      } = header as Headers & {
        pax?: Record<string, string>;
      };
      if (!Number.isSafeInteger(size) || size < 0)
        throw new TarError(
          `the archive has an entry of an invalid size: ${JSON.stringify(name.slice(0, 80))}`,
        );
      lastEntryEnd = offset + BLOCK_BYTES + Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES;
      const type = ENTRY_TYPES[header.type ?? 'file'] ?? 'other';
      yield {
        name: name.replace(/\/+$/, ''),
        type: type === 'file' && name.endsWith('/') ? 'folder' : type,
        size,
        mode: mode & 0o7777,
        modifiedAt: pax?.['mtime'] === undefined ? Number(mtime) : Number(pax['mtime']) * 1000,
        target: linkname ?? '',
        content: contentOf(entry as AsyncIterable<Uint8Array>),
      };
      entry.resume();
    }
    await parsed;
  } catch (error) {
    throw toTarError(error);
  } finally {
    parser.destroy();
  }
  // Two blocks of zeros end an archive. Without one, the rest of it is missing.
  if (bytesRead < lastEntryEnd + BLOCK_BYTES) throw new TarError('the archive is incomplete');
}
