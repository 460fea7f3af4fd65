import { createHash, createHmac } from 'node:crypto';
import type { Hash, Hmac } from 'node:crypto';
import {
  canonicalRequest,
  credentialScope,
  sha256Hex,
  sign,
  signingKey,
  stringToSign,
} from '../../cloud/src/auth/sigv4.ts';
import { S3Query } from '../../cloud/src/http/s3/s3-url.ts';
import type { S3Key } from './s3-test-client.ts';

/** One request, signed by hand, so that any part of it can be wrong. */
export interface S3Attempt {
  method?: string;
  path: string;
  query?: Record<string, string>;
  headers?: Record<string, string>;
  body?: string | Buffer;
  payload?: string;
  region?: string;
  at?: number;
  /** Signed for this many seconds, in the address. */
  expires?: number;
}

const toAmzDate = (at: number): string => new Date(at).toISOString().replaceAll(/[-:]|\.\d{3}/g, '');

export function signS3Request(
  url: string,
  { accessId, secret }: S3Key,
  {
    method = 'GET',
    path,
    query = {},
    headers = {},
    body = '',
    payload,
    region = 'LOCAL-1',
    at = Date.now(),
    expires,
  }: S3Attempt,
) {
  const time = toAmzDate(at);
  const scope = { accessId, date: time.slice(0, 8), region, service: 's3' };
  const hash =
    payload ?? (expires === undefined ? createHash('sha256').update(body).digest('hex') : 'UNSIGNED-PAYLOAD');
  const all: Record<string, string> = {
    host: new URL(url).host,
    ...(expires === undefined && { 'x-amz-date': time, 'x-amz-content-sha256': hash }),
    ...headers,
  };
  const names = Object.keys(all).sort();
  const asked =
    expires === undefined
      ? query
      : {
          ...query,
          'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
          'X-Amz-Credential': `${accessId}/${credentialScope(scope)}`,
          'X-Amz-Date': time,
          'X-Amz-Expires': String(expires),
          'X-Amz-SignedHeaders': names.join(';'),
        };
  const text = new URLSearchParams(asked).toString().replaceAll('+', '%20');
  const key = signingKey(secret, scope);
  const canonical = canonicalRequest(
    { method, path, query: new S3Query(text).pairs, headers: all, payloadHash: hash },
    names,
  );
  const signature = sign(key, stringToSign({ scope, time }, canonical));
  const authorization =
    `AWS4-HMAC-SHA256 Credential=${accessId}/${credentialScope(scope)}, ` +
    `SignedHeaders=${names.join(';')}, Signature=${signature}`;
  const { host: _host, ...sent } = all;
  return {
    address: `${url}${path}?${text}${expires === undefined ? '' : `&X-Amz-Signature=${signature}`}`,
    headers: { ...sent, ...(expires === undefined && { authorization }) },
    signature,
    key,
    scope,
    time,
  };
}

export type Tampering = 'nothing' | 'content' | 'signature' | 'checksum' | 'end';

/** A PUT whose body comes in signed chunks, optionally with a signed checksum after it. */
export function signChunkedPut(
  url: string,
  key: S3Key,
  {
    path,
    pieces,
    tamper,
    trailing,
  }: { path: string; pieces: string[]; tamper: Tampering; trailing: boolean },
) {
  const content = pieces.join('');
  const request = signS3Request(url, key, {
    method: 'PUT',
    path,
    payload: `STREAMING-AWS4-HMAC-SHA256-PAYLOAD${trailing ? '-TRAILER' : ''}`,
    headers: {
      'content-encoding': 'aws-chunked',
      'x-amz-decoded-content-length': String(content.length),
      ...(trailing && { 'x-amz-trailer': 'x-amz-checksum-sha256' }),
    },
  });
  let previous = request.signature;
  const signNext = (algorithm: string, ...hashes: string[]): string =>
    sign(
      request.key,
      [algorithm, request.time, credentialScope(request.scope), previous, ...hashes].join('\n'),
    );
  const chunks = [...pieces, ''].map((piece, index) => {
    previous = signNext('AWS4-HMAC-SHA256-PAYLOAD', sha256Hex(''), sha256Hex(piece));
    const signature =
      tamper === 'signature' && index === 1
        ? previous.replace(/^./, (first) => (first === '0' ? '1' : '0'))
        : previous;
    const sent = tamper === 'content' && index === 0 ? piece.replace('first', 'worst') : piece;
    return `${piece.length.toString(16)};chunk-signature=${signature}\r\n${sent}${piece === '' ? '' : '\r\n'}`;
  });
  const sum = createHash('sha256')
    .update(tamper === 'checksum' ? 'else' : content)
    .digest('base64');
  const trailer = `x-amz-checksum-sha256:${sum}`;
  const trailerSignature = signNext('AWS4-HMAC-SHA256-TRAILER', sha256Hex(`${trailer}\n`));
  const end = trailing ? `${trailer}\r\nx-amz-trailer-signature:${trailerSignature}\r\n\r\n` : '\r\n';
  const body = chunks.join('') + end;
  const { address, headers } = request;
  return { address, headers, body: tamper === 'end' ? body.slice(0, 120) : body };
}

/** What the public signer wants to hash with. */
export class Sha256 {
  readonly #hash: Hash | Hmac;

  constructor(secret?: unknown) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', secret as string);
  }

  update(data: unknown): void {
    this.#hash.update(data as string);
  }

  digest(): Promise<Uint8Array> {
    return Promise.resolve(this.#hash.digest());
  }

  reset(): void {
    throw new Error('not needed');
  }
}
