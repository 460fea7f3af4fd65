import { pipeline } from 'node:stream/promises';
import type { OpenObject } from '../../resources/volumes/volume-objects.ts';
import type { S3Query } from './s3-url.ts';
import { parseRange, checkReadConditions } from './conditional-requests.ts';
import type { S3BucketExchange } from './s3-exchange.ts';
import { noSuchKey, objectHeaders } from './s3-exchange.ts';
import { S3Error } from './s3.errors.ts';
import { requireLength } from '../require-length.ts';

/** Query parameters that set headers of the response. */
const OVERRIDABLE_HEADERS = [
  'content-type',
  'content-language',
  'expires',
  'cache-control',
  'content-disposition',
  'content-encoding',
];

/** GetObject, and HeadObject without the content. */
export async function readObject({ request, response, url, objects }: S3BucketExchange): Promise<void> {
  const object = await objects.open(url.key);
  if (object === undefined) throw noSuchKey(url.key);
  let reading = false;
  try {
    const { headers } = request;
    const about = { ...objectHeaders(object), ...headerOverrides(url.query) };
    if (checkReadConditions(headers, object) === 'not-modified')
      return void response
        .writeHead(304, { etag: about['etag'] ?? '', 'last-modified': about['last-modified'] ?? '' })
        .end();
    const range = parseRange(
      rangeApplies(headers['if-range'], object) ? headers.range : undefined,
      object.size,
    );
    const { from, to } = range ?? { from: 0, to: object.size - 1 };
    const checksums =
      range === undefined && headers['x-amz-checksum-mode']?.toString().toUpperCase() === 'ENABLED'
        ? object.checksums
        : {};
    response.writeHead(range === undefined ? 200 : 206, {
      ...about,
      ...checksums,
      'content-length': to - from + 1,
      ...(range !== undefined && { 'content-range': `bytes ${from}-${to}/${object.size}` }),
    });
    if (request.method === 'HEAD' || to < from) return void response.end();
    reading = true;
    await pipeline(
      object.read(from, to),
      (content: AsyncIterable<Uint8Array>) => requireLength(content, to - from + 1),
      response,
    );
  } finally {
    if (!reading) await object.close();
  }
}

/** A client that resumes a download gets the rest only if the object has not changed. */
function rangeApplies(header: string | string[] | undefined, { etag, modifiedAt }: OpenObject): boolean {
  if (typeof header !== 'string') return true;
  return header.startsWith('"')
    ? header === `"${etag}"`
    : Date.parse(header) >= Math.floor(modifiedAt / 1000) * 1000;
}

function headerOverrides(query: S3Query): Record<string, string> {
  return Object.fromEntries(
    OVERRIDABLE_HEADERS.flatMap((name) => {
      const value = query.get(`response-${name}`);
      return value === undefined || value === '' ? [] : [[name, headerValue(name, value)]];
    }),
  );
}

/** Characters beyond ASCII are sent as UTF-8 bytes. */
function headerValue(name: string, value: string): string {
  if (/[\0-\x08\x0a-\x1f\x7f]/.test(value))
    throw new S3Error('InvalidArgument', `response-${name} has a character that is not allowed in a header`, {
      ArgumentName: `response-${name}`,
    });
  return Buffer.from(value).toString('latin1');
}
