import { createReadStream } from 'node:fs';
import { lstat, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { readEntryNames } from '../entry-names.ts';
import { TAR_BLOCK_BYTES, paddingBytes } from './tar-entry.ts';
import type { TarEntry } from './tar-entry.ts';

const MAX_HEADER_NAME = 100;
/** Of the eleven octal digits that a header has for it. */
const MAX_HEADER_SIZE = 8 ** 11 - 1;
const TYPES: Record<TarEntry['type'], string> = {
  file: '0',
  'hard-link': '1',
  link: '2',
  folder: '5',
  other: '0',
};

/** A tar of what is at a path, under this name: a file, a link, or a folder with all that is in it. What is none of these, or has a name that is no text, is left out. */
export async function* packTree(
  path: string,
  name: string,
  onBytes: (count: number) => void = () => undefined,
): AsyncGenerator<Uint8Array> {
  yield* packBelow(path, name, onBytes);
  yield Buffer.alloc(2 * TAR_BLOCK_BYTES);
}

async function* packBelow(
  path: string,
  name: string,
  onBytes: (count: number) => void,
): AsyncGenerator<Uint8Array> {
  const found = await lstat(path);
  const about = { name, mode: found.mode & 0o7777, modifiedAt: found.mtimeMs, size: 0, target: '' };
  if (found.isSymbolicLink()) yield tarHeader({ ...about, type: 'link', target: await readlink(path) });
  if (found.isFile()) {
    yield tarHeader({ ...about, type: 'file', size: found.size });
    yield* content(path, found.size, onBytes);
  }
  if (!found.isDirectory()) return;
  yield tarHeader({ ...about, type: 'folder' });
  for (const child of (await readEntryNames(path)).names)
    yield* packBelow(join(path, child), `${name}/${child}`, onBytes);
}

/** As long as the header says, whatever becomes of the file meanwhile: what is written to a log goes on, and a tar must not. */
async function* content(
  path: string,
  size: number,
  onBytes: (count: number) => void,
): AsyncGenerator<Uint8Array> {
  let left = size;
  if (size > 0) {
    for await (const piece of createReadStream(path, {
      end: size - 1,
      highWaterMark: 256 * 1024,
    }) as AsyncIterable<Buffer>) {
      left -= piece.length;
      onBytes(piece.length);
      yield piece;
    }
  }
  for (; left > 0; left -= Math.min(left, 64 * 1024)) yield Buffer.alloc(Math.min(left, 64 * 1024));
  yield Buffer.alloc(paddingBytes(size));
}

/** A header, after one of the kind `x` where a name is too long for it, is not ASCII, or the size is too large. */
export function tarHeader(entry: TarEntry): Buffer {
  const shownName = entry.type === 'folder' ? `${entry.name}/` : entry.name;
  const more: Record<string, string> = {
    ...(fits(shownName) ? {} : { path: shownName }),
    ...(fits(entry.target) ? {} : { linkpath: entry.target }),
    ...(entry.size > MAX_HEADER_SIZE ? { size: String(entry.size) } : {}),
  };
  const own = block(shownName, TYPES[entry.type], entry);
  if (Object.keys(more).length === 0) return own;
  const records = Buffer.from(
    Object.entries(more)
      .map(([key, value]) => record(key, value))
      .join(''),
  );
  const before = block('PaxHeader', 'x', { ...entry, size: records.length, target: '' });
  return Buffer.concat([before, records, Buffer.alloc(paddingBytes(records.length)), own]);
}

function fits(text: string): boolean {
  return text.length <= MAX_HEADER_NAME && /^[\x20-\x7e]*$/.test(text);
}

/** `LENGTH key=value\n`, where the length counts its own digits. */
function record(key: string, value: string): string {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest + String(rest).length;
  length = rest + String(length).length;
  return `${length} ${key}=${value}\n`;
}

function block(
  name: string,
  type: string,
  { mode, size, modifiedAt, target }: Pick<TarEntry, 'mode' | 'size' | 'modifiedAt' | 'target'>,
): Buffer {
  const bytes = Buffer.alloc(TAR_BLOCK_BYTES);
  const octal = (value: number, at: number, width: number): void =>
    void bytes.write(
      Math.max(0, Math.floor(value))
        .toString(8)
        .padStart(width - 1, '0')
        .slice(-(width - 1)),
      at,
      'ascii',
    );
  bytes.write(name.slice(0, MAX_HEADER_NAME), 0, MAX_HEADER_NAME, 'latin1');
  octal(mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(modifiedAt / 1000, 136, 12);
  bytes.write('        ', 148);
  bytes.write(type, 156);
  bytes.write(target.slice(0, MAX_HEADER_NAME), 157, MAX_HEADER_NAME, 'latin1');
  bytes.write('ustar\x0000', 257, 'latin1');
  let sum = 0;
  for (const byte of bytes) sum += byte;
  bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return bytes;
}
