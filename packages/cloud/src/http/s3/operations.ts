import type { IncomingMessage } from 'node:http';
import type { Need } from '../../resources/keys/scopes.ts';
import type { S3Address, S3Query } from './address.ts';
import { bucketLocation, bucketVersioning, headBucket } from './buckets.ts';
import type { BucketExchange } from './exchange.ts';
import { S3Failure } from './failures.ts';
import { listObjectsV1, listObjectsV2 } from './list-objects.ts';
import {
  abortUpload,
  completeUpload,
  createUpload,
  listParts,
  listUploads,
  uploadPart,
  uploadPartCopy,
} from './multipart.ts';
import { readObject } from './read-object.ts';
import { copyObject, deleteObject, deleteObjects, objectTagging, putObject } from './write-object.ts';

export interface S3Operation {
  need: Need;
  run(exchange: BucketExchange): Promise<void> | void;
}

/** Words of a query that ask for something which volumes do not have. */
const ABSENT = [
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

const reading = (run: S3Operation['run']): S3Operation => ({ need: 'read', run });
const writing = (run: S3Operation['run']): S3Operation => ({ need: 'write', run });

/** What a request asks for, by its method and the words of its query. */
export function operationFor(
  { method = '', headers }: IncomingMessage,
  { bucket, key, query }: S3Address,
): S3Operation {
  if (bucket === '') {
    if (method === 'GET') return reading(() => undefined);
  } else {
    const found =
      key === ''
        ? bucketOperation(method, query)
        : objectOperation(method, query, headers['x-amz-copy-source'] !== undefined);
    if (found !== undefined) return found;
    const absent = ABSENT.find((word) => query.has(word));
    if (absent !== undefined)
      throw new S3Failure('NotImplemented', `network volumes have nothing for "${absent}"`);
  }
  throw new S3Failure('MethodNotAllowed', 'The specified method is not allowed against this resource.', {
    Method: method,
    ResourceType: key === '' ? 'BUCKET' : 'OBJECT',
  });
}

function bucketOperation(method: string, query: S3Query): S3Operation | undefined {
  if (method === 'GET' && query.has('location')) return reading(bucketLocation);
  if (method === 'GET' && query.has('versioning')) return reading(bucketVersioning);
  if (method === 'GET' && query.has('uploads')) return reading(listUploads);
  if (method === 'POST' && query.has('delete')) return writing(deleteObjects);
  if (ABSENT.some((word) => query.has(word))) return undefined;
  if (method === 'GET') return reading(query.get('list-type') === '2' ? listObjectsV2 : listObjectsV1);
  if (method === 'HEAD') return reading(headBucket);
  if (method === 'PUT') return writing(alreadyThere);
  if (method === 'DELETE') return writing(notHere);
  return undefined;
}

function objectOperation(method: string, query: S3Query, copies: boolean): S3Operation | undefined {
  if (method === 'GET' && query.has('tagging')) return reading(objectTagging);
  if (ABSENT.some((word) => query.has(word))) return undefined;
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
function alreadyThere(): never {
  throw new S3Failure(
    'BucketAlreadyOwnedByYou',
    'This network volume is there already; new ones are made with "berth volume create"',
  );
}

function notHere(): never {
  throw new S3Failure('NotImplemented', 'a network volume is deleted with "berth volume rm", or over REST');
}
