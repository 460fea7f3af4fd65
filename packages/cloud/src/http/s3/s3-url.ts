import { S3Error } from './s3.errors.ts';

export const S3_PREFIX = '/s3';

/** What a request names: nothing, a bucket, or an object in it, and the words of its query. */
export interface S3Url {
  /** As it was sent, without the query: what is signed. */
  path: string;
  bucket: string;
  key: string;
  query: S3Query;
}

/** The words of a query in the order they came. */
export class S3Query {
  readonly pairs: readonly (readonly [string, string])[];

  constructor(text: string) {
    this.pairs = text
      .split('&')
      .filter((pair) => pair !== '')
      .map((pair) => {
        const mark = pair.indexOf('=');
        return mark === -1
          ? [percentDecode(pair), '']
          : [percentDecode(pair.slice(0, mark)), percentDecode(pair.slice(mark + 1))];
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
    bucket: percentDecode(bucket),
    key: key.map(percentDecode).join('/'),
    query: new S3Query(mark === -1 ? '' : url.slice(mark + 1)),
  };
}

export function percentDecode(text: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    throw new S3Error(
      'InvalidArgument',
      'the address has a percent sign that does not begin a character of UTF-8',
    );
  }
}

/** As signatures have it: everything but letters, digits and `-._~` is written in percent. */
export function percentEncode(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
