import type { ObjectListing } from '../../resources/volumes/object-listing.ts';
import type { S3Query } from './s3-url.ts';
import { percentEncode } from '../../support/percent-encoding.ts';
import type { S3BucketExchange } from './s3-exchange.ts';
import { quoteEtag, s3Document, sendXml, s3Timestamp } from './s3-exchange.ts';
import { S3Error } from './s3.errors.ts';
import { element } from '../../support/xml-writer.ts';
import type { XmlFragment } from '../../support/xml-writer.ts';
import type { StoredObject } from '../../resources/volumes/object-metadata.ts';

const MAX_KEYS = 1_000;

/** ListObjects, the first version. */
export async function listObjectsV1({
  response,
  url: { query },
  volume,
  objects,
}: S3BucketExchange): Promise<void> {
  const { prefix, delimiter, limit, write } = readQuery(query);
  const marker = query.get('marker') ?? '';
  const listing = await objects.list({ prefix, delimiter, after: marker, limit });
  sendXml(
    response,
    s3Document('ListBucketResult', [
      element('Name', volume.id),
      element('Prefix', write(prefix)),
      element('Marker', write(marker)),
      element('MaxKeys', limit),
      delimiter === '' ? undefined : element('Delimiter', write(delimiter)),
      encodingElement(query),
      element('IsTruncated', listing.next !== undefined),
      listing.next === undefined ? undefined : element('NextMarker', write(listing.next)),
      ...contentsOf(listing, write, false, volume.accountId),
    ]),
  );
}

export async function listObjectsV2({
  response,
  url: { query },
  volume,
  objects,
}: S3BucketExchange): Promise<void> {
  const { prefix, delimiter, limit, write } = readQuery(query);
  const token = query.get('continuation-token');
  const startAfter = query.get('start-after') ?? '';
  const listing = await objects.list({
    prefix,
    delimiter,
    after: token === undefined ? startAfter : readToken(token),
    limit,
  });
  sendXml(
    response,
    s3Document('ListBucketResult', [
      element('Name', volume.id),
      element('Prefix', write(prefix)),
      element('MaxKeys', limit),
      element('KeyCount', listing.objects.length + listing.prefixes.length),
      delimiter === '' ? undefined : element('Delimiter', write(delimiter)),
      encodingElement(query),
      element('IsTruncated', listing.next !== undefined),
      token === undefined ? undefined : element('ContinuationToken', token),
      listing.next === undefined
        ? undefined
        : element('NextContinuationToken', Buffer.from(listing.next).toString('base64url')),
      startAfter === '' ? undefined : element('StartAfter', write(startAfter)),
      ...contentsOf(listing, write, query.get('fetch-owner') !== 'true', volume.accountId),
    ]),
  );
}

function readQuery(query: S3Query): {
  prefix: string;
  delimiter: string;
  limit: number;
  write: (text: string) => string;
} {
  return {
    prefix: query.get('prefix') ?? '',
    delimiter: query.get('delimiter') ?? '',
    limit: parseLimit(query, 'max-keys', MAX_KEYS),
    write: keyEncoder(query),
  };
}

export function parseLimit(query: S3Query, name: string, most: number): number {
  const value = query.get(name);
  if (value === undefined || value === '') return most;
  if (!/^\d{1,10}$/.test(value))
    throw new S3Error('InvalidArgument', `${name} must be a number from 0 on`, {
      ArgumentName: name,
      ArgumentValue: value,
    });
  return Math.min(Number(value), most);
}

/** Keys may hold what XML cannot: a client may ask for them as they stand in addresses. */
export function keyEncoder(query: S3Query): (text: string) => string {
  const encoding = query.get('encoding-type');
  if (encoding !== undefined && encoding !== '' && encoding !== 'url')
    throw new S3Error('InvalidArgument', 'encoding-type can be "url"', {
      ArgumentName: 'encoding-type',
      ArgumentValue: encoding,
    });
  return encoding === 'url' ? (text) => text.split('/').map(percentEncode).join('/') : (text) => text;
}

export function encodingElement(query: S3Query): XmlFragment | undefined {
  return query.get('encoding-type') === 'url' ? element('EncodingType', 'url') : undefined;
}

function contentsOf(
  { objects, prefixes }: ObjectListing,
  write: (text: string) => string,
  withoutOwner: boolean,
  owner: string,
): XmlFragment[] {
  return [
    ...objects.map((object) =>
      element('Contents', contentOf(object, write, withoutOwner ? undefined : owner)),
    ),
    ...prefixes.map((prefix) => element('CommonPrefixes', [element('Prefix', write(prefix))])),
  ];
}

function contentOf(
  { key, modifiedAt, etag, size }: StoredObject,
  write: (text: string) => string,
  owner: string | undefined,
): (XmlFragment | undefined)[] {
  return [
    element('Key', write(key)),
    element('LastModified', s3Timestamp(modifiedAt)),
    element('ETag', quoteEtag(etag)),
    element('Size', size),
    owner === undefined ? undefined : element('Owner', [element('ID', owner), element('DisplayName', owner)]),
    element('StorageClass', 'STANDARD'),
  ];
}

function readToken(token: string): string {
  const key = Buffer.from(token, 'base64url').toString('utf8');
  if (key === '' || Buffer.from(key).toString('base64url') !== token)
    throw new S3Error('InvalidArgument', 'the continuation token is not one of this list', {
      ArgumentName: 'continuation-token',
      ArgumentValue: token.slice(0, 80),
    });
  return key;
}
