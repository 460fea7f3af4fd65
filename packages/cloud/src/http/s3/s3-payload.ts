import type { IncomingMessage } from 'node:http';
import type { ChecksumName } from '../../support/checksums.ts';
import { StreamChecksums } from '../../support/stream-checksums.ts';
import { piecesInTurns } from '../body-turns.ts';
import { CHECKSUM_HEADERS } from './s3-checksums.ts';
import { decodeAwsChunked } from './aws-chunked.ts';
import { UNSIGNED_PAYLOAD } from '../../auth/s3-authenticator.ts';
import type { AuthenticatedS3Request } from '../../auth/s3-authenticator.ts';
import { S3Error } from './s3.errors.ts';

/** The body of an upload. If it was read to its end without an error, its checksums are correct. */
export interface Payload {
  bytes: AsyncIterable<Uint8Array>;
  length: number;
  /** The verified checksums, by header name. */
  checksums(): Readonly<Record<string, string>>;
}

const CHUNKED_SIGNED = new Set([
  'STREAMING-AWS4-HMAC-SHA256-PAYLOAD',
  'STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER',
]);
const CHUNKED_UNSIGNED = 'STREAMING-UNSIGNED-PAYLOAD-TRAILER';

export function readPayload(
  request: IncomingMessage,
  { payloadHash, signing }: AuthenticatedS3Request,
): Payload {
  const chunked = CHUNKED_SIGNED.has(payloadHash) || payloadHash === CHUNKED_UNSIGNED;
  if (!chunked && payloadHash !== UNSIGNED_PAYLOAD && !/^[0-9a-f]{64}$/.test(payloadHash))
    throw new S3Error(
      'InvalidArgument',
      'x-amz-content-sha256 must be the SHA-256 of the body in hex, UNSIGNED-PAYLOAD or one of the ' +
        'STREAMING values of S3',
    );
  if (CHUNKED_SIGNED.has(payloadHash) && signing === undefined)
    throw new S3Error('InvalidRequest', 'signed chunks need a request that is signed with an S3 key');
  const found: Record<string, string> = {};
  const expected = expectedChecksums(request, chunked);
  const source = piecesInTurns(request, request.iterator({ destroyOnReturn: false }));
  let trailers: ReadonlyMap<string, string> = new Map();
  const bytes: AsyncIterable<Uint8Array> = chunked
    ? decodeAwsChunked(source, {
        signing: CHUNKED_SIGNED.has(payloadHash) ? signing : undefined,
        onTrailers: (read) => (trailers = read),
      })
    : source;
  return {
    bytes: verifyChecksums(bytes, payloadHash, expected, () => trailers, found),
    length: payloadLength(request, chunked),
    checksums: () => found,
  };
}

/** Reads a small body into memory. */
export async function readSmallPayload(
  request: IncomingMessage,
  auth: AuthenticatedS3Request,
  limit: number,
): Promise<Buffer> {
  const { bytes, length } = readPayload(request, auth);
  if (length > limit)
    throw new S3Error('EntityTooLarge', `the body has ${length} bytes; allowed: at most ${limit}`);
  const pieces: Uint8Array[] = [];
  let read = 0;
  for await (const piece of bytes) {
    read += piece.length;
    if (read > length)
      throw new S3Error('IncompleteBody', `the body is longer than the ${length} bytes that were announced`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

function payloadLength({ headers }: IncomingMessage, chunked: boolean): number {
  const declaredLength = chunked ? headers['x-amz-decoded-content-length'] : headers['content-length'];
  const length = Number(
    declaredLength ?? (headers['transfer-encoding'] === undefined && !chunked ? 0 : Number.NaN),
  );
  if (typeof declaredLength === 'string' && !/^\d{1,15}$/.test(declaredLength))
    throw new S3Error('InvalidArgument', 'the length of the body must be a number');
  if (Number.isNaN(length))
    throw new S3Error(
      'MissingContentLength',
      `this header is missing: ${chunked ? 'x-amz-decoded-content-length' : 'content-length'}`,
    );
  return length;
}

interface ExpectedChecksum {
  header: string;
  name: ChecksumName;
  /** Undefined if it is in the trailer. */
  value: string | undefined;
}

function expectedChecksums({ headers }: IncomingMessage, chunked: boolean): ExpectedChecksum[] {
  const expected = [...CHECKSUM_HEADERS].flatMap(([header, name]): ExpectedChecksum[] => {
    const value = headers[header];
    return typeof value === 'string' ? [{ header, name, value }] : [];
  });
  const md5 = headers['content-md5'];
  if (typeof md5 === 'string') {
    if (Buffer.from(md5, 'base64').length !== 16)
      throw new S3Error('InvalidDigest', 'Content-MD5 must be an MD5 in base64');
    expected.push({ header: 'content-md5', name: 'md5', value: md5 });
  }
  const announced =
    chunked && typeof headers['x-amz-trailer'] === 'string'
      ? headers['x-amz-trailer'].split(',').map((name) => name.trim().toLowerCase())
      : [];
  for (const header of announced) {
    const name = CHECKSUM_HEADERS.get(header);
    if (name !== undefined) expected.push({ header, name, value: undefined });
  }
  return expected;
}

/** Passes the bytes on, and throws at their end if a checksum differs. */
async function* verifyChecksums(
  bytes: AsyncIterable<Uint8Array>,
  payload: string,
  expected: readonly ExpectedChecksum[],
  trailers: () => ReadonlyMap<string, string>,
  found: Record<string, string>,
): AsyncGenerator<Uint8Array> {
  const isSigned = /^[0-9a-f]{64}$/.test(payload);
  const checksums = new StreamChecksums([
    ...(isSigned ? (['sha256'] as const) : []),
    ...expected.map(({ name }) => name),
  ]);
  try {
    for await (const piece of bytes) {
      await checksums.update(piece);
      yield piece;
    }
    const digests = await checksums.digests();
    if (isSigned && digests.shift()?.toString('hex') !== payload)
      throw new S3Error('XAmzContentSHA256Mismatch', 'the SHA-256 of the body is not the signed one', {
        ClientComputedContentSHA256: payload,
      });
    for (const { header, value = trailers().get(header) } of expected) {
      const digest = digests.shift()?.toString('base64') ?? '';
      if (value === undefined)
        throw new S3Error('InvalidRequest', `the trailer ${header} was announced but not sent`);
      if (value !== digest)
        throw new S3Error('BadDigest', `${header} is ${value}, but the body has ${digest}`);
      if (header !== 'content-md5') found[header] = digest;
    }
  } finally {
    checksums.close();
  }
}
