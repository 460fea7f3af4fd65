import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { S3Url } from './s3-url.ts';
import { percentDecode, percentEncode } from './s3-url.ts';

/** Signature Version 4, as far as S3 uses it: what is signed, and with what. */
export const SIGV4_ALGORITHM = 'AWS4-HMAC-SHA256';

/** `ID/20260131/REGION/s3/aws4_request` */
export interface CredentialScope {
  accessId: string;
  /** YYYYMMDD */
  date: string;
  region: string;
}

export interface RequestSignature {
  scope: CredentialScope;
  /** YYYYMMDDTHHMMSSZ */
  time: string;
  headers: readonly string[];
  signature: string;
}

export interface SignedRequest {
  method: string;
  url: S3Url;
  headers: IncomingHttpHeaders;
  /** The SHA-256 of the body in hex, or the word that stands for it. */
  payloadHash: string;
}

export function credentialScope({ date, region }: CredentialScope): string {
  return `${date}/${region}/s3/aws4_request`;
}

export function signingKey(secret: string, { date, region }: CredentialScope): Buffer {
  return ['s3', 'aws4_request'].reduce(
    (key, word) => hmac(key, word),
    hmac(hmac(Buffer.from(`AWS4${secret}`), date), region),
  );
}

export function sign(key: Buffer, text: string): string {
  return hmac(key, text).toString('hex');
}

export function stringToSign(
  { scope, time }: Pick<RequestSignature, 'scope' | 'time'>,
  canonical: string,
): string {
  return [SIGV4_ALGORITHM, time, credentialScope(scope), sha256Hex(canonical)].join('\n');
}

export function canonicalRequest(
  { method, url, headers, payloadHash }: SignedRequest,
  signedHeaders: readonly string[],
): string {
  return [
    method,
    url.path
      .split('/')
      .map((segment) => percentEncode(percentDecode(segment)))
      .join('/'),
    canonicalQuery(url),
    ...signedHeaders.map((name) => `${name}:${headerText(headers[name])}`),
    '',
    signedHeaders.join(';'),
    payloadHash,
  ].join('\n');
}

function canonicalQuery({ query }: S3Url): string {
  return query.pairs
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map(([name, value]) => [percentEncode(name), percentEncode(value)] as const)
    .sort(([name, value], [otherName, otherValue]) =>
      name === otherName ? compareAscii(value, otherValue) : compareAscii(name, otherName),
    )
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
}

/** Text of ASCII alone. */
function compareAscii(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

function headerText(value: string | string[] | undefined): string {
  return [value ?? '']
    .flat()
    .map((one) => one.trim().replaceAll(/ +/g, ' '))
    .join(',');
}

/** Takes the same time wherever they differ. */
export function timingSafeEqualText(one: string, other: string): boolean {
  const [left, right] = [Buffer.from(one), Buffer.from(other)];
  return left.length === right.length && timingSafeEqual(left, right);
}

export function sha256Hex(text: string | Uint8Array): string {
  return createHash('sha256').update(text).digest('hex');
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}
