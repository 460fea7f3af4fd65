import type { IncomingHttpHeaders } from 'node:http';
import type { WriteCondition } from '../../resources/volumes/volume-objects.ts';
import { S3Error } from './s3.errors.ts';
import type { StoredObject } from '../../resources/volumes/object-metadata.ts';

export type ReadDecision = 'go' | 'not-modified';

/**
 * Whether a reader gets what it asks for. `prefix` is that of the headers that speak of the source of a copy.
 */
export function checkReadConditions(
  headers: IncomingHttpHeaders,
  { etag, modifiedAt }: Pick<StoredObject, 'etag' | 'modifiedAt'>,
  prefix: '' | 'x-amz-copy-source-' = '',
): ReadDecision {
  const header = (name: string): string | undefined => {
    const value = headers[prefix + name];
    return typeof value === 'string' ? value : undefined;
  };
  const seconds = Math.floor(modifiedAt / 1000) * 1000;
  const match = header('if-match');
  const unmodified = Date.parse(header('if-unmodified-since') ?? '');
  if (match !== undefined ? !matches(match, etag) : unmodified < seconds) throw preconditionFailed();
  const noneMatch = header('if-none-match');
  const modified = Date.parse(header('if-modified-since') ?? '');
  const known = noneMatch !== undefined ? matches(noneMatch, etag) : modified >= seconds;
  if (!known) return 'go';
  if (prefix !== '') throw preconditionFailed();
  return 'not-modified';
}

/** Whether a writer may replace the existing object. */
export function writeCondition(headers: IncomingHttpHeaders): WriteCondition {
  const { 'if-match': match, 'if-none-match': noneMatch } = headers;
  return (present) => {
    if (noneMatch !== undefined && present !== undefined && matches(noneMatch, present.etag))
      throw preconditionFailed();
    if (match === undefined) return;
    if (present === undefined) throw new S3Error('NoSuchKey', 'there is no object under this key to replace');
    if (!matches(match, present.etag)) throw preconditionFailed();
  };
}

function preconditionFailed(): S3Error {
  return new S3Error('PreconditionFailed', 'At least one of the pre-conditions you specified did not hold');
}

function matches(list: string, etag: string): boolean {
  return list
    .split(',')
    .map((one) => one.trim().replace(/^W\//, '').replaceAll('"', ''))
    .some((one) => one === '*' || one === etag);
}

export interface ByteRange {
  from: number;
  to: number;
}

/**
 * The one range of bytes that is asked for; undefined is all of it. What is no range, or more than one, is
 * passed over as HTTP says.
 */
export function parseRange(header: string | undefined, size: number): ByteRange | undefined {
  const [, first, last] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? '') ?? [];
  if (first === undefined || last === undefined || (first === '' && last === '')) return undefined;
  if (first !== '' && last !== '' && Number(last) < Number(first)) return undefined;
  const from = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  if (from >= size || (first === '' && Number(last) === 0))
    throw new S3Error('InvalidRange', 'The requested range is not satisfiable', {
      ActualObjectSize: String(size),
    });
  return { from, to: first === '' || last === '' ? size - 1 : Math.min(Number(last), size - 1) };
}
