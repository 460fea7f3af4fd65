import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { S3Address } from './address.ts';
import { decoded, encoded } from './address.ts';

/** Signature Version 4, as far as S3 uses it: what is signed, and with what. */
export const ALGORITHM = 'AWS4-HMAC-SHA256';

/** `ID/20260131/REGION/s3/aws4_request` */
export interface Scope {
  accessId: string;
  /** YYYYMMDD */
  date: string;
  region: string;
}

export interface Signed {
  scope: Scope;
  /** YYYYMMDDTHHMMSSZ */
  time: string;
  headers: readonly string[];
  signature: string;
}

export interface SignedRequest {
  method: string;
  address: S3Address;
  headers: IncomingHttpHeaders;
  /** The SHA-256 of the body in hex, or the word that stands for it. */
  payload: string;
}

export function scopeText({ date, region }: Scope): string {
  return `${date}/${region}/s3/aws4_request`;
}

export function signingKey(secret: string, { date, region }: Scope): Buffer {
  return ['s3', 'aws4_request'].reduce(
    (key, word) => hmac(key, word),
    hmac(hmac(Buffer.from(`AWS4${secret}`), date), region),
  );
}

export function sign(key: Buffer, text: string): string {
  return hmac(key, text).toString('hex');
}

export function stringToSign({ scope, time }: Pick<Signed, 'scope' | 'time'>, canonical: string): string {
  return [ALGORITHM, time, scopeText(scope), sha256(canonical)].join('\n');
}

export function canonicalRequest(
  { method, address, headers, payload }: SignedRequest,
  signedHeaders: readonly string[],
): string {
  return [
    method,
    address.path
      .split('/')
      .map((segment) => encoded(decoded(segment)))
      .join('/'),
    canonicalQuery(address),
    ...signedHeaders.map((name) => `${name}:${headerText(headers[name])}`),
    '',
    signedHeaders.join(';'),
    payload,
  ].join('\n');
}

function canonicalQuery({ query }: S3Address): string {
  return query.pairs
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map(([name, value]) => [encoded(name), encoded(value)] as const)
    .sort(([name, value], [otherName, otherValue]) =>
      name === otherName ? order(value, otherValue) : order(name, otherName),
    )
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
}

/** Text of ASCII alone. */
function order(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

function headerText(value: string | string[] | undefined): string {
  return [value ?? '']
    .flat()
    .map((one) => one.trim().replaceAll(/ +/g, ' '))
    .join(',');
}

/** Takes the same time wherever they differ. */
export function isSame(one: string, other: string): boolean {
  const [left, right] = [Buffer.from(one), Buffer.from(other)];
  return left.length === right.length && timingSafeEqual(left, right);
}

export function sha256(text: string | Uint8Array): string {
  return createHash('sha256').update(text).digest('hex');
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}
