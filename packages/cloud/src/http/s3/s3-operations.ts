import type { IncomingMessage } from 'node:http';
import type { AccessMode } from '../../auth/scopes.ts';
import type { S3Url, S3Query } from './s3-url.ts';
import { bucketLocation, bucketVersioning, headBucket } from './s3-buckets.ts';
import type { S3BucketExchange } from './s3-exchange.ts';
import { S3Error } from './s3.errors.ts';
import { listObjectsV1, listObjectsV2 } from './s3-list-objects.ts';
import {
  abortUpload,
  completeUpload,
  createUpload,
  listParts,
  listUploads,
  uploadPart,
  uploadPartCopy,
} from './s3-multipart.ts';
import { readObject } from './s3-read-object.ts';
import { copyObject, deleteObject, deleteObjects, objectTagging, putObject } from './s3-write-object.ts';

export interface S3Operation {
  mode: AccessMode;
  run(exchange: S3BucketExchange): Promise<void> | void;
}

/** Words of a query that ask for something which volumes do not have. */
const UNSUPPORTED_QUERIES = [
  'accelerate',
  'acl',
  'analytics',
  'attributes',
  'cors',
  'encryption',
  'intelligent-tiering',
  'inventory',
  'legal-hold',
  'lifecycle',
  'logging',
  'metrics',
  'notification',
  'object-lock',
  'ownershipControls',
  'policy',
  'policyStatus',
  'publicAccessBlock',
  'replication',
  'requestPayment',
  'restore',
  'retention',
  'select',
  'session',
  'tagging',
  'torrent',
  'versioning',
  'versions',
  'website',
];

const reading = (run: S3Operation['run']): S3Operation => ({ mode: 'read', run });
const writing = (run: S3Operation['run']): S3Operation => ({ mode: 'write', run });

/** What a request asks for, by its method and the words of its query. */
export function findS3Operation(
  { method = '', headers }: IncomingMessage,
  { bucket, key, query }: S3Url,
): S3Operation {
  if (bucket === '') {
    if (method === 'GET') return reading(() => undefined);
  } else {
    const found =
      key === ''
        ? bucketOperation(method, query)
        : objectOperation(method, query, headers['x-amz-copy-source'] !== undefined);
    if (found !== undefined) return found;
    const absent = UNSUPPORTED_QUERIES.find((word) => query.has(word));
    if (absent !== undefined)
      throw new S3Error('NotImplemented', `network volumes have nothing for "${absent}"`);
  }
  throw new S3Error('MethodNotAllowed', 'The specified method is not allowed against this resource.', {
    Method: method,
    ResourceType: key === '' ? 'BUCKET' : 'OBJECT',
  });
}

function bucketOperation(method: string, query: S3Query): S3Operation | undefined {
  if (method === 'GET' && query.has('location')) return reading(bucketLocation);
  if (method === 'GET' && query.has('versioning')) return reading(bucketVersioning);
  if (method === 'GET' && query.has('uploads')) return reading(listUploads);
  if (method === 'POST' && query.has('delete')) return writing(deleteObjects);
  if (UNSUPPORTED_QUERIES.some((word) => query.has(word))) return undefined;
  if (method === 'GET') return reading(query.get('list-type') === '2' ? listObjectsV2 : listObjectsV1);
  if (method === 'HEAD') return reading(headBucket);
  if (method === 'PUT') return writing(bucketAlreadyExists);
  if (method === 'DELETE') return writing(bucketDeletionUnsupported);
  return undefined;
}

function objectOperation(method: string, query: S3Query, copies: boolean): S3Operation | undefined {
  if (method === 'GET' && query.has('tagging')) return reading(objectTagging);
  if (UNSUPPORTED_QUERIES.some((word) => query.has(word))) return undefined;
  if (query.has('uploadId')) {
    if (method === 'GET') return reading(listParts);
    if (method === 'PUT') return writing(copies ? uploadPartCopy : uploadPart);
    if (method === 'POST') return writing(completeUpload);
    if (method === 'DELETE') return writing(abortUpload);
    return undefined;
  }
  if (method === 'POST' && query.has('uploads')) return writing(createUpload);
  if (method === 'GET' || method === 'HEAD') return reading(readObject);
  if (method === 'PUT') return writing(copies ? copyObject : putObject);
  if (method === 'DELETE') return writing(deleteObject);
  return undefined;
}

/** Tools make sure of their bucket in this way. One that is not there was refused before. */
function bucketAlreadyExists(): never {
  throw new S3Error(
    'BucketAlreadyOwnedByYou',
    'This network volume is there already; new ones are made with "berth volume create"',
  );
}

function bucketDeletionUnsupported(): never {
  throw new S3Error('NotImplemented', 'a network volume is deleted with "berth volume rm", or over REST');
}
