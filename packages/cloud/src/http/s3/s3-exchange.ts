import type { IncomingMessage, ServerResponse } from 'node:http';
import type { VolumeContents } from '../../resources/volumes/volume-contents.ts';
import type { ObjectStore, UploadStore } from '../../resources/volumes/volume-backend.ts';
import type { NetworkVolume } from '../../domain/records.ts';
import type { S3Url } from './s3-url.ts';
import type { AuthenticatedS3Request } from '../../auth/s3-authenticator.ts';
import { S3Error } from './s3.errors.ts';
import { xmlDocument } from '../../support/xml-writer.ts';
import type { XmlContent } from '../../support/xml-writer.ts';
import type { StoredObject } from '../../resources/volumes/object-metadata.ts';

/** An authorized request. */
export interface S3Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  url: S3Url;
  auth: AuthenticatedS3Request;
}

/** A request about a bucket or what is in it. */
export interface S3BucketExchange extends S3Exchange {
  volume: NetworkVolume;
  objects: ObjectStore;
  uploads: UploadStore;
  /** Another volume of the same account, for a copy between two. */
  otherVolume(id: string): Promise<NetworkVolume>;
  contents: VolumeContents;
  /** Any error as an S3 error. */
  toS3Error(error: unknown): S3Error;
  /** The same as a document, for a response that has started. */
  errorDocument(error: unknown): string;
}

const S3_NAMESPACE = 'http://s3.amazonaws.com/doc/2006-03-01/';

export function s3Document(name: string, content: XmlContent): string {
  return xmlDocument(name, content, S3_NAMESPACE);
}

export function sendXml(
  response: ServerResponse,
  document: string,
  headers: Record<string, string> = {},
): void {
  response
    .writeHead(200, {
      'content-type': 'application/xml',
      'content-length': Buffer.byteLength(document),
      ...headers,
    })
    .end(document);
}

export function sendEmpty(
  response: ServerResponse,
  status: 200 | 204,
  headers: Record<string, string | number> = {},
): void {
  response.writeHead(status, { ...(status === 200 && { 'content-length': 0 }), ...headers }).end();
}

export function quoteEtag(etag: string): string {
  return `"${etag}"`;
}

export function noSuchKey(key: string): S3Error {
  return new S3Error('NoSuchKey', 'The specified key does not exist.', { Key: key });
}

export function s3Timestamp(at: number): string {
  return new Date(Math.floor(at / 1000) * 1000).toISOString();
}

/**
 * How long a slow operation may run before its response starts, and the pause between keep-alive spaces after
 * that.
 */
const KEEP_ALIVE_MS = 5_000;

/**
 * Responds with a document that may take long to make. Clients time out after about a minute: after a few
 * seconds the response starts, and spaces keep it alive. An error after that is in the document, as in S3.
 */
export async function sendXmlWhenDone(
  response: ServerResponse,
  work: Promise<string>,
  failed: (error: unknown) => string,
): Promise<void> {
  const timer = setInterval(() => {
    if (!response.headersSent) {
      response.writeHead(200, { 'content-type': 'application/xml' });
      response.write('<?xml version="1.0" encoding="UTF-8"?>\n');
    } else response.write(' ');
  }, KEEP_ALIVE_MS);
  try {
    const document = await work;
    if (response.headersSent) response.end(withoutDeclaration(document));
    else sendXml(response, document);
  } catch (error) {
    if (!response.headersSent) throw error;
    response.end(withoutDeclaration(failed(error)));
  } finally {
    clearInterval(timer);
  }
}

function withoutDeclaration(document: string): string {
  return document.replace(/^<\?[^>]*\?>\s*/, '');
}

/** Headers of a client that are kept with an object and returned to its readers. */
const STORED_HEADERS = [
  'content-type',
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'expires',
];
const MAX_METADATA_BYTES = 8 * 1024;

export function storedHeaders({ headers }: IncomingMessage): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (
      (STORED_HEADERS.includes(name) || name.startsWith('x-amz-meta-')) &&
      typeof value === 'string' &&
      value !== ''
    )
      kept[name] = value;
  }
  // The transfer encoding is not part of the object.
  const encodings = (kept['content-encoding'] ?? '')
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '' && one !== 'aws-chunked');
  if (encodings.length === 0) delete kept['content-encoding'];
  else kept['content-encoding'] = encodings.join(',');
  if (
    Object.entries(kept).reduce((sum, [name, value]) => sum + name.length + value.length, 0) >
    MAX_METADATA_BYTES
  )
    throw new S3Error(
      'InvalidArgument',
      `the metadata of an object may have at most ${MAX_METADATA_BYTES} bytes`,
    );
  return kept;
}

export function objectHeaders({ etag, modifiedAt, headers }: StoredObject): Record<string, string> {
  return {
    'content-type': 'application/octet-stream',
    ...headers,
    etag: quoteEtag(etag),
    'last-modified': new Date(modifiedAt).toUTCString(),
    'accept-ranges': 'bytes',
  };
}
