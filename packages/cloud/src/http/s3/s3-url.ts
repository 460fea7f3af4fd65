import { percentDecode } from '../../support/percent-encoding.ts';
import { S3Error } from './s3.errors.ts';

const S3_PREFIX = '/s3';

/** What a request names: nothing, a bucket or an object, and its query. */
export interface S3Url {
  /** As it is on the wire, without the query: this is what is signed. */
  path: string;
  bucket: string;
  key: string;
  query: S3Query;
}

/** The parameters of a query, in the order of the URL. */
export class S3Query {
  readonly pairs: readonly (readonly [string, string])[];

  constructor(text: string) {
    this.pairs = text
      .split('&')
      .filter((pair) => pair !== '')
      .map((pair) => {
        const equals = pair.indexOf('=');
        return equals === -1
          ? [decodeS3Text(pair), '']
          : [decodeS3Text(pair.slice(0, equals)), decodeS3Text(pair.slice(equals + 1))];
      });
  }

  get(name: string): string | undefined {
    return this.pairs.find(([known]) => known === name)?.[1];
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }
}

export function isS3Url(url: string): boolean {
  return (
    url === S3_PREFIX ||
    (url.startsWith(S3_PREFIX) && (url[S3_PREFIX.length] === '/' || url[S3_PREFIX.length] === '?'))
  );
}

export function parseS3Url(url: string): S3Url {
  const mark = url.indexOf('?');
  const path = mark === -1 ? url : url.slice(0, mark);
  const [, bucket = '', ...key] = path.slice(S3_PREFIX.length).split('/');
  return {
    path,
    bucket: decodeS3Text(bucket),
    key: key.map(decodeS3Text).join('/'),
    query: new S3Query(mark === -1 ? '' : url.slice(mark + 1)),
  };
}

export function decodeS3Text(text: string): string {
  const decoded = percentDecode(text);
  if (decoded === undefined)
    throw new S3Error('InvalidArgument', 'the URL has a percent sign that does not start a UTF-8 character');
  return decoded;
}
