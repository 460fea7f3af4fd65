import { TAR_BLOCK_BYTES, paddingBytes } from './tar-entry.ts';
import type { TarEntry } from './tar-entry.ts';

/** A name or a list of attributes that is longer than this is no honest one. */
const MAX_EXTENDED_HEADER_BYTES = 1024 ** 2;

export class TarError extends Error {
  override readonly name = 'TarError';
}

export interface TarReadEntry extends TarEntry {
  /** The content of a file. What is not read is passed over. */
  content: AsyncIterable<Uint8Array>;
}

const ENTRY_TYPES: Record<string, TarEntry['type']> = {
  '0': 'file',
  '\0': 'file',
  '': 'file',
  '7': 'file',
  '1': 'hard-link',
  '2': 'link',
  '5': 'folder',
};

/** The entries of a tar, one after the other, in any of the forms that Docker and the usual programs write. */
export async function* readTar(source: AsyncIterable<Uint8Array>): AsyncGenerator<TarReadEntry> {
  const reader = new ByteReader(source);
  let more: Partial<Record<'path' | 'linkpath' | 'size' | 'mtime', string>> = {};
  for (;;) {
    const block = await reader.exactly(TAR_BLOCK_BYTES);
    if (block === undefined) throw new TarError('the archive ended early');
    if (block.every((byte) => byte === 0)) {
      await reader.drain();
      return;
    }
    checkSum(block);
    const type = text(block, 156, 1);
    const size =
      more.size === undefined || type === 'x' || type === 'g' ? number(block, 124, 12) : Number(more.size);
    if (!Number.isSafeInteger(size) || size < 0) throw new TarError('the archive says a size that cannot be');
    if (type === 'x' || type === 'g' || type === 'L' || type === 'K') {
      if (size > MAX_EXTENDED_HEADER_BYTES) throw new TarError('the archive has a name that cannot be');
      const extra = await reader.exactly(size + paddingBytes(size));
      if (extra === undefined) throw new TarError('the archive ended early');
      const words = extra.toString('utf8', 0, size);
      if (type === 'x') more = { ...more, ...attributes(extra.subarray(0, size)) };
      if (type === 'L') more.path = words.replace(/\0.*$/s, '');
      if (type === 'K') more.linkpath = words.replace(/\0.*$/s, '');
      continue;
    }
    const prefix =
      text(block, 257, 5) === 'ustar' && text(block, 263, 2) === '00' ? text(block, 345, 155) : '';
    const name = more.path ?? (prefix === '' ? text(block, 0, 100) : `${prefix}/${text(block, 0, 100)}`);
    const kind = ENTRY_TYPES[type] ?? 'other';
    const content = reader.content(size);
    const modifiedAt = more.mtime === undefined ? number(block, 136, 12) * 1000 : Number(more.mtime) * 1000;
    yield {
      name: name.replace(/\/+$/, ''),
      type: kind === 'file' && name.endsWith('/') ? 'folder' : kind,
      size,
      mode: number(block, 100, 8) & 0o7777,
      modifiedAt,
      target: more.linkpath ?? text(block, 157, 100),
      content,
    };
    more = {};
    await reader.finish();
  }
}

function attributes(bytes: Buffer): Record<string, string> {
  const found: Record<string, string> = {};
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(0x20, at);
    const length = Number(bytes.toString('latin1', at, space));
    if (space === -1 || !Number.isInteger(length) || length <= 0 || at + length > bytes.length)
      throw new TarError('the archive has attributes that cannot be read');
    const [, key = '', value = ''] =
      /^([^=]*)=(.*)\n$/s.exec(bytes.toString('utf8', space + 1, at + length)) ?? [];
    found[key] = value;
    at += length;
  }
  return found;
}

function checkSum(block: Buffer): void {
  let sum = 0;
  for (let at = 0; at < TAR_BLOCK_BYTES; at += 1) sum += at >= 148 && at < 156 ? 0x20 : (block[at] as number);
  if (sum !== number(block, 148, 8)) throw new TarError('this is no tar archive, or it is damaged');
}

function text(block: Buffer, at: number, length: number): string {
  const end = block.indexOf(0, at);
  return block.toString('utf8', at, end === -1 || end > at + length ? at + length : end);
}

/** Octal digits, or, where the first bit is set, plain bytes. */
function number(block: Buffer, at: number, length: number): number {
  if (((block[at] as number) & 0x80) !== 0)
    return block.subarray(at + 1, at + length).reduce((sum, byte) => sum * 256 + byte, 0);
  const digits = text(block, at, length).trim();
  return digits === '' ? 0 : Number.parseInt(digits, 8);
}

/** Takes a stream apart by lengths. */
class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #rest: Buffer = Buffer.alloc(0);
  #left = 0;
  #padding = 0;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Undefined where the stream ends before. */
  async exactly(length: number): Promise<Buffer | undefined> {
    const pieces = [this.#rest];
    let had = this.#rest.length;
    while (had < length) {
      const more = await this.#more();
      if (more === undefined) return undefined;
      pieces.push(more);
      had += more.length;
    }
    const all = pieces.length === 1 ? this.#rest : Buffer.concat(pieces);
    this.#rest = all.subarray(length);
    return all.subarray(0, length);
  }

  /** Whether it is read or not, it lies before the next entry. */
  content(size: number): AsyncIterable<Uint8Array> {
    this.#left = size;
    this.#padding = paddingBytes(size);
    return this.#content();
  }

  async *#content(): AsyncGenerator<Uint8Array> {
    while (this.#left > 0) yield await this.#next();
  }

  /** Passes over what was not read of the content. */
  async finish(): Promise<void> {
    while (this.#left > 0) await this.#next();
    if (this.#padding > 0 && (await this.exactly(this.#padding)) === undefined)
      throw new TarError('the archive ended early');
    this.#padding = 0;
  }

  /** To its end: whoever sends is not cut off. */
  async drain(): Promise<void> {
    while ((await this.#more()) !== undefined);
  }

  async #next(): Promise<Buffer> {
    if (this.#rest.length === 0) {
      const more = await this.#more();
      if (more === undefined) throw new TarError('the archive ended early');
      this.#rest = more;
    }
    const piece = this.#rest.subarray(0, this.#left);
    this.#rest = this.#rest.subarray(piece.length);
    this.#left -= piece.length;
    return piece;
  }

  async #more(): Promise<Buffer | undefined> {
    const { done, value } = await this.#source.next();
    return done === true ? undefined : Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  }
}
