import { S3Failure } from './failures.ts';

export const PREFIX = '/s3';

/** What a request names: nothing, a bucket, or an object in it, and the words of its query. */
export interface S3Address {
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
          ? [decoded(pair), '']
          : [decoded(pair.slice(0, mark)), decoded(pair.slice(mark + 1))];
      });
  }

  get(name: string): string | undefined {
    return this.pairs.find(([known]) => known === name)?.[1];
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }
}

export function isS3(url: string): boolean {
  return (
    url === PREFIX || (url.startsWith(PREFIX) && (url[PREFIX.length] === '/' || url[PREFIX.length] === '?'))
  );
}

export function s3Address(url: string): S3Address {
  const mark = url.indexOf('?');
  const path = mark === -1 ? url : url.slice(0, mark);
  const [, bucket = '', ...key] = path.slice(PREFIX.length).split('/');
  return {
    path,
    bucket: decoded(bucket),
    key: key.map(decoded).join('/'),
    query: new S3Query(mark === -1 ? '' : url.slice(mark + 1)),
  };
}

export function decoded(text: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    throw new S3Failure(
      'InvalidArgument',
      'the address has a percent sign that does not begin a character of UTF-8',
    );
  }
}

/** As signatures have it: everything but letters, digits and `-._~` is written in percent. */
export function encoded(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
