import type { ServerResponse } from 'node:http';
import { isPermissionError } from '../../support/permission-error.ts';
import type { BerthError, ErrorCode } from '../../support/errors.ts';
import { element, xmlDocument } from '../../support/xml-writer.ts';

/** The S3 error codes in use, with their status. */
const S3_ERROR_STATUS = {
  AccessDenied: 403,
  AuthorizationHeaderMalformed: 400,
  AuthorizationQueryParametersError: 400,
  BadDigest: 400,
  BucketAlreadyOwnedByYou: 409,
  EntityTooLarge: 400,
  EntityTooSmall: 400,
  ExpiredToken: 400,
  IncompleteBody: 400,
  InternalError: 500,
  InvalidAccessKeyId: 403,
  InvalidArgument: 400,
  InvalidDigest: 400,
  InvalidPart: 400,
  InvalidPartOrder: 400,
  InvalidRange: 416,
  InvalidRequest: 400,
  KeyTooLongError: 400,
  MalformedXML: 400,
  MethodNotAllowed: 405,
  MissingContentLength: 411,
  NoSuchBucket: 404,
  NoSuchKey: 404,
  NoSuchUpload: 404,
  NotImplemented: 501,
  PreconditionFailed: 412,
  QuotaExceeded: 403,
  RequestTimeTooSkewed: 403,
  ServiceUnavailable: 503,
  SignatureDoesNotMatch: 403,
  SlowDown: 503,
  XAmzContentSHA256Mismatch: 400,
} as const;
export type S3ErrorCode = keyof typeof S3_ERROR_STATUS;

/** An error as S3 clients read it. */
export class S3Error extends Error {
  readonly code: S3ErrorCode;
  /** More elements of the error document, such as the correct region. */
  readonly fields: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: S3ErrorCode,
    message: string,
    fields: Readonly<Record<string, string>> = {},
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.name = 'S3Error';
    this.code = code;
    this.fields = fields;
    this.headers = headers;
  }

  get status(): number {
    return S3_ERROR_STATUS[this.code];
  }
}

/** Berth's error codes as S3 codes. */
const S3_CODE_OF: Record<ErrorCode, S3ErrorCode> = {
  malformed: 'IncompleteBody',
  schema: 'InvalidRequest',
  rule: 'InvalidArgument',
  unauthenticated: 'AccessDenied',
  forbidden: 'AccessDenied',
  'not-found': 'NoSuchBucket',
  'no-route': 'InvalidRequest',
  method: 'MethodNotAllowed',
  taken: 'InvalidRequest',
  conflict: 'InvalidRequest',
  'in-use': 'InvalidRequest',
  state: 'InvalidRequest',
  capacity: 'QuotaExceeded',
  'too-large': 'QuotaExceeded',
  'media-type': 'InvalidRequest',
  rate: 'SlowDown',
  'quota-count': 'QuotaExceeded',
  'quota-bytes': 'QuotaExceeded',
  'quota-spending': 'QuotaExceeded',
  retired: 'NotImplemented',
  unavailable: 'ServiceUnavailable',
  internal: 'InternalError',
};

export function toS3Error(error: BerthError): S3Error {
  return new S3Error(S3_CODE_OF[error.code], error.message, {}, error.headers);
}

/** A full disk or a missing permission; undefined for any other error. */
export function diskErrorToS3Error(error: unknown): S3Error | undefined {
  if (isFull(error)) return new S3Error('QuotaExceeded', 'the disk of this volume is full');
  if (isPermissionError(error))
    return new S3Error(
      'AccessDenied',
      'a file or folder of this volume belongs to another user of the machine, and Berth may not change it',
    );
  return undefined;
}

function isFull(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOSPC' || code === 'EDQUOT';
}

export function errorDocument(
  { code, message, fields }: S3Error,
  resource: string,
  requestId: string,
): string {
  return xmlDocument('Error', [
    element('Code', code),
    element('Message', message),
    ...Object.entries(fields).map(([name, value]) => element(name, value)),
    element('Resource', resource),
    element('RequestId', requestId),
  ]);
}

export function sendS3Error(
  response: ServerResponse,
  error: S3Error,
  { resource, requestId, withBody }: { resource: string; requestId: string; withBody: boolean },
): void {
  if (response.destroyed) return;
  // The response has started: the error can only be shown by closing the connection.
  if (response.headersSent) return void response.destroy();
  const body = withBody ? errorDocument(error, resource, requestId) : '';
  response.writeHead(error.status, {
    ...error.headers,
    ...(withBody && { 'content-type': 'application/xml', 'content-length': Buffer.byteLength(body) }),
    ...(error.fields['Region'] !== undefined && { 'x-amz-bucket-region': error.fields['Region'] }),
    ...(error.code === 'MethodNotAllowed' && { allow: 'GET, HEAD, PUT, POST, DELETE' }),
  });
  response.end(body);
}
