import { createHash, createHmac } from 'node:crypto';
import { percentDecode, percentEncode } from '../support/percent-encoding.ts';

/**
 * AWS Signature Version 4: what is signed, and with which key. Used to check S3 requests and to sign requests
 * to ECR.
 */
export const SIGV4_ALGORITHM = 'AWS4-HMAC-SHA256';

/** `ID/20260131/REGION/SERVICE/aws4_request` */
export interface CredentialScope {
  accessId: string;
  /** YYYYMMDD */
  date: string;
  region: string;
  /** `s3` or `ecr`. */
  service: string;
}

export interface RequestSignature {
  scope: CredentialScope;
  /** YYYYMMDDTHHMMSSZ */
  time: string;
  headers: readonly string[];
  signature: string;
}

export type SignedHeaders = Readonly<Record<string, string | string[] | undefined>>;

export interface SignableRequest {
  method: string;
  /** As it is on the wire, without the query. */
  path: string;
  /** The decoded names and values of the query. */
  query: readonly (readonly [string, string])[];
  /** By lower-case name. */
  headers: SignedHeaders;
  /** The SHA-256 of the body in hex, or the constant that replaces it. */
  payloadHash: string;
}

export function credentialScope({ date, region, service }: CredentialScope): string {
  return `${date}/${region}/${service}/aws4_request`;
}

export function signingKey(secret: string, { date, region, service }: CredentialScope): Buffer {
  return [date, region, service, 'aws4_request'].reduce(
    (key: Buffer, part) => hmac(key, part),
    Buffer.from(`AWS4${secret}`),
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
  { method, path, query, headers, payloadHash }: SignableRequest,
  signedHeaders: readonly string[],
): string {
  return [
    method,
    path
      .split('/')
      .map((segment) => percentEncode(percentDecode(segment) ?? segment))
      .join('/'),
    canonicalQuery(query),
    ...signedHeaders.map((name) => `${name}:${canonicalHeaderValue(headers[name])}`),
    '',
    signedHeaders.join(';'),
    payloadHash,
  ].join('\n');
}

/** The headers of a request with its `authorization` header added. Every header given is signed. */
export function signHeaders(
  { headers, ...request }: Omit<SignableRequest, 'headers'> & { headers: Record<string, string> },
  { accessId, secret, region, service }: Omit<CredentialScope, 'date'> & { secret: string },
  now: number,
): Record<string, string> {
  const time = sigV4Time(now);
  const scope: CredentialScope = { accessId, date: time.slice(0, 8), region, service };
  const signed: Record<string, string> = { ...headers, 'x-amz-date': time };
  const names = Object.keys(signed).sort();
  const text = stringToSign({ scope, time }, canonicalRequest({ ...request, headers: signed }, names));
  const signature = sign(signingKey(secret, scope), text);
  return {
    ...signed,
    authorization:
      `${SIGV4_ALGORITHM} Credential=${accessId}/${credentialScope(scope)}, ` +
      `SignedHeaders=${names.join(';')}, Signature=${signature}`,
  };
}

/** `20260131T235959Z` */
export function sigV4Time(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replaceAll(/[-:]|\.\d{3}/g, '');
}

function canonicalQuery(query: SignableRequest['query']): string {
  return query
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map(([name, value]) => [percentEncode(name), percentEncode(value)] as const)
    .sort(([name, value], [otherName, otherValue]) =>
      name === otherName ? compareAscii(value, otherValue) : compareAscii(name, otherName),
    )
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
}

function compareAscii(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

function canonicalHeaderValue(value: string | string[] | undefined): string {
  return [value ?? '']
    .flat()
    .map((one) => one.trim().replaceAll(/ +/g, ' '))
    .join(',');
}

export function sha256Hex(text: string | Uint8Array): string {
  return createHash('sha256').update(text).digest('hex');
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}
