import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { request as httpRequest } from '../../support/node-http.ts';
import { sha256Hex, signHeaders } from '../../auth/sigv4.ts';
import { percentEncode } from '../../support/percent-encoding.ts';
import type { AwsIdentity } from '../registries/ecr-login.ts';

/** A connection on which nothing happens for this long is given up. */
const IDLE_TIMEOUT_MS = 60_000;

export interface S3Location {
  /** Such as `https://s3.eu-west-1.amazonaws.com`; the bucket is the first part of the path. */
  endpoint: string;
  region: string;
  bucket: string;
  identity: AwsIdentity;
  now(): number;
}

/** Part of a file. */
export interface FilePiece {
  file: string;
  start: number;
  length: number;
}

export interface S3Response {
  headers: IncomingMessage['headers'];
  body: string;
}

/** One signed request. Rejects with the answer of the service if it refuses. */
export async function s3Request(
  location: S3Location,
  method: string,
  key: string,
  query: [string, string][] = [],
  body: string | Uint8Array | FilePiece = '',
): Promise<S3Response> {
  const response = await send(location, method, key, query, body);
  return { headers: response.headers, body: await text(response) };
}

/** The content of an object. */
export function openS3Object(location: S3Location, key: string): Promise<Readable> {
  return send(location, 'GET', key, [], '');
}

async function send(
  { endpoint, region, bucket, identity, now }: S3Location,
  method: string,
  key: string,
  query: [string, string][],
  body: string | Uint8Array | FilePiece,
): Promise<IncomingMessage> {
  const base = new URL(endpoint);
  const path = `${base.pathname.replace(/\/$/, '')}/${[bucket, ...key.split('/')].map(percentEncode).join('/')}`;
  const inMemory = typeof body === 'string' || body instanceof Uint8Array;
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length;
  const payloadHash = inMemory ? sha256Hex(body) : await sha256Of(body);
  const headers = signHeaders(
    {
      method,
      path,
      query,
      headers: {
        host: base.host,
        'content-length': String(length),
        'x-amz-content-sha256': payloadHash,
        ...(identity.sessionToken !== undefined && { 'x-amz-security-token': identity.sessionToken }),
      },
      payloadHash,
    },
    { accessId: identity.accessKeyId, secret: identity.secretAccessKey, region, service: 's3' },
    now(),
  );
  const search = query.map(([name, value]) => `${percentEncode(name)}=${percentEncode(value)}`).join('&');
  const outgoing = (base.protocol === 'https:' ? httpsRequest : httpRequest)({
    protocol: base.protocol,
    hostname: base.hostname,
    port: base.port,
    method,
    path: search === '' ? path : `${path}?${search}`,
    headers,
    timeout: IDLE_TIMEOUT_MS,
  });
  outgoing.on('timeout', () => outgoing.destroy(new Error(`${base.host} did not answer`)));
  const answered = new Promise<IncomingMessage>((resolve, reject) =>
    outgoing.on('response', resolve).on('error', reject),
  );
  // A service that refuses early answers while the body is still sent.
  answered.catch(() => undefined);
  if (inMemory) outgoing.end(body);
  else pipeline(piece(body), outgoing).catch(() => undefined);
  const response = await answered;
  const status = response.statusCode ?? 0;
  if (status < 200 || status > 299)
    throw new Error(`${method} ${bucket}/${key} was refused with ${status}: ${reason(await text(response))}`);
  return response;
}

function piece({ file, start, length }: FilePiece): AsyncIterable<Uint8Array> {
  return length === 0
    ? (async function* () {})()
    : (createReadStream(file, { start, end: start + length - 1 }) as AsyncIterable<Uint8Array>);
}

async function sha256Of(body: FilePiece): Promise<string> {
  const hash = createHash('sha256');
  for await (const bytes of piece(body)) hash.update(bytes);
  return hash.digest('hex');
}

function reason(answer: string): string {
  return /<Message>([^<]*)<\/Message>/.exec(answer)?.[1] ?? answer.slice(0, 200);
}
