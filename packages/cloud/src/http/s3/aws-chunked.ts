import { createHash } from 'node:crypto';
import type { SigningContext } from '../../auth/s3-authenticator.ts';
import { S3Error } from './s3.errors.ts';
import { credentialScope, sha256Hex, sign } from '../../auth/sigv4.ts';
import { timingSafeEqualText } from '../../support/crypto.ts';

/** Longer lines are not part of a chunked body. */
const MAX_LINE_BYTES = 8 * 1024;
const EMPTY_SHA256 = sha256Hex('');

export interface AwsChunkedOptions {
  /** If chunks are signed: the request's signature, which the first chunk's is chained to. */
  signing: SigningContext | undefined;
  /** Called with the trailers after their signature was verified. */
  onTrailers(trailers: ReadonlyMap<string, string>): void;
}

/**
 * Decodes a body of the encoding `aws-chunked`: chunks with their length and, if they are signed, a
 * signature chained to the one before. The bytes are verified only when the end was reached.
 */
export async function* decodeAwsChunked(
  source: AsyncIterable<Uint8Array>,
  { signing, onTrailers }: AwsChunkedOptions,
): AsyncGenerator<Uint8Array> {
  const reader = new ByteReader(source);
  let previousSignature = signing?.signature ?? '';
  for (;;) {
    const [, size, signature] =
      /^([0-9a-fA-F]{1,12})(?:;chunk-signature=([0-9a-f]{64}))?$/.exec(await reader.line()) ?? [];
    if (size === undefined) throw new S3Error('InvalidRequest', 'the body is not encoded as aws-chunked');
    const length = Number.parseInt(size, 16);
    const hash = signing === undefined ? undefined : createHash('sha256');
    for await (const piece of reader.take(length)) {
      hash?.update(piece);
      yield piece;
    }
    if (signing !== undefined) {
      const text = [
        'AWS4-HMAC-SHA256-PAYLOAD',
        signing.time,
        credentialScope(signing.scope),
        previousSignature,
        EMPTY_SHA256,
        hash?.digest('hex'),
      ].join('\n');
      if (!timingSafeEqualText(sign(signing.key, text), signature ?? ''))
        throw new S3Error('SignatureDoesNotMatch', 'the signature of a chunk of the body does not match');
      previousSignature = signature ?? '';
    }
    if (length === 0) break;
    if ((await reader.line()) !== '')
      throw new S3Error('InvalidRequest', 'a chunk of the body is longer than its length field');
  }
  onTrailers(await readTrailers(reader, signing, previousSignature));
}

async function readTrailers(
  reader: ByteReader,
  signed: SigningContext | undefined,
  previousSignature: string,
): Promise<Map<string, string>> {
  const trailers = new Map<string, string>();
  for (let line = await reader.line(true); line !== ''; line = await reader.line(true)) {
    const mark = line.indexOf(':');
    if (mark === -1 || trailers.size >= 16)
      throw new S3Error('InvalidRequest', 'the end of the body is not encoded as aws-chunked');
    trailers.set(line.slice(0, mark).trim().toLowerCase(), line.slice(mark + 1).trim());
  }
  const signature = trailers.get(TRAILER_SIGNATURE);
  trailers.delete(TRAILER_SIGNATURE);
  if (signed !== undefined && trailers.size > 0) {
    const canonical = [...trailers].map(([name, value]) => `${name}:${value}\n`).join('');
    const text = [
      'AWS4-HMAC-SHA256-TRAILER',
      signed.time,
      credentialScope(signed.scope),
      previousSignature,
      sha256Hex(canonical),
    ].join('\n');
    if (!timingSafeEqualText(sign(signed.key, text), signature ?? ''))
      throw new S3Error('SignatureDoesNotMatch', 'the signature of the trailers does not match');
  }
  return trailers;
}

const TRAILER_SIGNATURE = 'x-amz-trailer-signature';

/** Reads lines and byte ranges from a stream of chunks. */
class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** A line without its line break. With `mayEnd`, the end of the body counts as an empty line. */
  async line(mayEnd = false): Promise<string> {
    for (;;) {
      const end = this.#rest.indexOf('\n');
      if (end !== -1) {
        const line = this.#rest.toString('latin1', 0, end).replace(/\r$/, '');
        this.#rest = this.#rest.subarray(end + 1);
        return line;
      }
      if (this.#rest.length > MAX_LINE_BYTES)
        throw new S3Error('InvalidRequest', 'the body is not encoded as aws-chunked');
      const more = await this.#more();
      if (more === undefined && mayEnd && this.#rest.length === 0) return '';
      if (more === undefined) throw incompleteBody();
      this.#rest = this.#rest.length === 0 ? more : Buffer.concat([this.#rest, more]);
    }
  }

  async *take(length: number): AsyncGenerator<Uint8Array> {
    for (let left = length; left > 0; ) {
      if (this.#rest.length === 0) {
        const more = await this.#more();
        if (more === undefined) throw incompleteBody();
        this.#rest = more;
      }
      const piece = this.#rest.subarray(0, left);
      this.#rest = this.#rest.subarray(piece.length);
      left -= piece.length;
      yield piece;
    }
  }

  async #more(): Promise<Buffer | undefined> {
    const { done, value } = await this.#source.next();
    return done === true ? undefined : Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  }
}

function incompleteBody(): S3Error {
  return new S3Error('IncompleteBody', 'the body ended before its last chunk');
}
