import type { IncomingMessage } from 'node:http';
import { MAX_UPLOAD_PARTS } from '../../domain/limits.ts';
import type { UploadPart, MultipartUpload } from '../../resources/volumes/multipart-uploads.ts';
import { parseRange, writeCondition } from './conditional-requests.ts';
import type { S3BucketExchange } from './s3-exchange.ts';
import {
  storedHeaders,
  quoteEtag,
  s3Document,
  sendEmpty,
  sendXmlWhenDone,
  sendXml,
  s3Timestamp,
} from './s3-exchange.ts';
import { S3Error } from './s3.errors.ts';
import { encodingElement, parseLimit, keyEncoder } from './s3-list-objects.ts';
import { readPayload, readSmallPayload } from './s3-payload.ts';
import { UPLOAD_SOURCE_HEADER } from '../../domain/s3-names.ts';
import { checkKeyLength, openCopySource, asAsyncIterable } from './s3-write-object.ts';
import { parseXml, childText } from '../../support/xml-parser.ts';
import { element } from '../../support/xml-writer.ts';

const MAX_DOCUMENT_BYTES = 8 * 1024 ** 2;
const MAX_LISTED = 1_000;
const MAX_SOURCE_LENGTH = 128;

export async function createUpload({
  request,
  response,
  url,
  volume,
  uploads,
}: S3BucketExchange): Promise<void> {
  checkKeyLength(url.key);
  const { id } = await uploads.create(url.key, storedHeaders(request), sourceOf(request));
  sendXml(
    response,
    s3Document('InitiateMultipartUploadResult', [
      element('Bucket', volume.id),
      element('Key', url.key),
      element('UploadId', id),
    ]),
  );
}

function sourceOf({ headers }: IncomingMessage): string | undefined {
  const source = headers[UPLOAD_SOURCE_HEADER];
  if (typeof source === 'string' && source.length > MAX_SOURCE_LENGTH)
    throw new S3Error(
      'InvalidArgument',
      `${UPLOAD_SOURCE_HEADER} may have at most ${MAX_SOURCE_LENGTH} characters`,
      {
        ArgumentName: UPLOAD_SOURCE_HEADER,
      },
    );
  return typeof source === 'string' ? source : undefined;
}

export async function uploadPart(exchange: S3BucketExchange): Promise<void> {
  const { request, response, auth, uploads } = exchange;
  const number = partNumber(exchange);
  const payload = readPayload(request, auth);
  const part = await uploads.putPart(await uploadOf(exchange), number, payload);
  sendEmpty(response, 200, { etag: quoteEtag(part.etag), ...payload.checksums() });
}

export async function uploadPartCopy(exchange: S3BucketExchange): Promise<void> {
  const { request, response, uploads } = exchange;
  const [number, upload] = [partNumber(exchange), await uploadOf(exchange)];
  const source = await openCopySource(exchange);
  const copy = async (): Promise<string> => {
    let stream;
    try {
      const wanted = request.headers['x-amz-copy-source-range'];
      const { from, to } = (typeof wanted === 'string' ? parseRange(wanted, source.size) : undefined) ?? {
        from: 0,
        to: source.size - 1,
      };
      if (to >= from) stream = source.read(from, to);
      const part = await uploads.putPart(upload, number, {
        bytes: asAsyncIterable(stream ?? []),
        length: to - from + 1,
      });
      return s3Document('CopyPartResult', [
        element('LastModified', s3Timestamp(part.modifiedAt)),
        element('ETag', quoteEtag(part.etag)),
      ]);
    } finally {
      if (stream === undefined) await source.close();
      else stream.destroy();
    }
  };
  await sendXmlWhenDone(response, copy(), exchange.errorDocument);
}

export async function completeUpload(exchange: S3BucketExchange): Promise<void> {
  const { request, response, url, auth, volume, uploads } = exchange;
  const upload = await uploadOf(exchange);
  const chosen = parseCompletedParts(
    (await readSmallPayload(request, auth, MAX_DOCUMENT_BYTES)).toString('utf8'),
  );
  checkCompletedParts(chosen, await uploads.listParts(upload.id));
  const complete = async (): Promise<string> => {
    const { etag } = await uploads.complete(upload, chosen, writeCondition(request.headers));
    return s3Document('CompleteMultipartUploadResult', [
      element(
        'Location',
        `${request.headers.host === undefined ? '' : `http://${request.headers.host}`}${url.path}`,
      ),
      element('Bucket', volume.id),
      element('Key', url.key),
      element('ETag', quoteEtag(etag)),
    ]);
  };
  await sendXmlWhenDone(response, complete(), exchange.errorDocument);
}

function parseCompletedParts(document: string): Pick<UploadPart, 'number' | 'etag'>[] {
  const root = parseXml(document);
  const parts =
    root?.children
      .filter(({ name }) => name === 'Part')
      .map((part) => ({
        number: Number(childText(part, 'PartNumber') ?? Number.NaN),
        etag: (childText(part, 'ETag') ?? '').trim().replaceAll('"', '').toLowerCase(),
      })) ?? [];
  if (
    root?.name !== 'CompleteMultipartUpload' ||
    parts.length === 0 ||
    parts.some(({ number }) => !Number.isInteger(number))
  ) {
    throw new S3Error(
      'MalformedXML',
      'the body must be <CompleteMultipartUpload> with a <Part> of <PartNumber> and <ETag> for each part',
    );
  }
  return parts;
}

function checkCompletedParts(
  chosen: readonly Pick<UploadPart, 'number' | 'etag'>[],
  parts: readonly UploadPart[],
): void {
  const there = new Set(parts.map(({ number, etag }) => `${number} ${etag}`));
  chosen.forEach(({ number, etag }, index) => {
    if (index > 0 && number <= (chosen[index - 1]?.number ?? 0))
      throw new S3Error('InvalidPartOrder', 'The list of parts was not in ascending order.');
    if (!there.has(`${number} ${etag}`))
      throw new S3Error('InvalidPart', `part ${number} was not uploaded, or its ETag is another`, {
        PartNumber: String(number),
      });
  });
}

export async function abortUpload(exchange: S3BucketExchange): Promise<void> {
  await exchange.uploads.abort(await uploadOf(exchange));
  sendEmpty(exchange.response, 204);
}

export async function listParts(exchange: S3BucketExchange): Promise<void> {
  const {
    response,
    url: { query, key },
    volume,
    uploads,
  } = exchange;
  const upload = await uploadOf(exchange);
  const [limit, marker] = [
    parseLimit(query, 'max-parts', MAX_LISTED),
    parseLimit(query, 'part-number-marker', MAX_UPLOAD_PARTS) % MAX_UPLOAD_PARTS,
  ];
  const rest = (await uploads.listParts(upload.id)).filter(({ number }) => number > marker);
  const page = rest.slice(0, limit);
  const truncated = rest.length > page.length;
  sendXml(
    response,
    s3Document('ListPartsResult', [
      element('Bucket', volume.id),
      element('Key', key),
      element('UploadId', upload.id),
      element('PartNumberMarker', marker),
      truncated ? element('NextPartNumberMarker', page.at(-1)?.number ?? marker) : undefined,
      element('MaxParts', limit),
      element('IsTruncated', truncated),
      ...page.map((part) =>
        element('Part', [
          element('PartNumber', part.number),
          element('LastModified', s3Timestamp(part.modifiedAt)),
          element('ETag', quoteEtag(part.etag)),
          element('Size', part.size),
        ]),
      ),
      element('StorageClass', 'STANDARD'),
    ]),
  );
}

export async function listUploads({
  response,
  url: { query },
  volume,
  uploads,
}: S3BucketExchange): Promise<void> {
  const [limit, prefix, write] = [
    parseLimit(query, 'max-uploads', MAX_LISTED),
    query.get('prefix') ?? '',
    keyEncoder(query),
  ];
  const [keyMarker, idMarker] = [query.get('key-marker') ?? '', query.get('upload-id-marker') ?? ''];
  const all = (await uploads.list()).filter(({ key }) => key.startsWith(prefix));
  const from = keyMarker === '' ? 0 : firstAfter(all, keyMarker, idMarker);
  const page = all.slice(from, from + limit);
  const truncated = from + page.length < all.length;
  const last = page.at(-1);
  sendXml(
    response,
    s3Document('ListMultipartUploadsResult', [
      element('Bucket', volume.id),
      element('KeyMarker', write(keyMarker)),
      element('UploadIdMarker', idMarker),
      ...(truncated && last !== undefined
        ? [element('NextKeyMarker', write(last.key)), element('NextUploadIdMarker', last.id)]
        : []),
      element('Prefix', write(prefix)),
      encodingElement(query),
      element('MaxUploads', limit),
      element('IsTruncated', truncated),
      ...page.map(({ key, id, startedAt, source }) =>
        element('Upload', [
          element('Key', write(key)),
          element('UploadId', id),
          element('StorageClass', 'STANDARD'),
          element('Initiated', s3Timestamp(startedAt)),
          source === undefined ? undefined : element('Source', source),
        ]),
      ),
    ]),
  );
}

function firstAfter(all: readonly MultipartUpload[], key: string, id: string): number {
  const at = all.findIndex((upload) => upload.key === key && upload.id === id);
  if (at !== -1) return at + 1;
  const next = all.findIndex((upload) => upload.key > key);
  return next === -1 ? all.length : next;
}

async function uploadOf({ url: { query, key }, uploads }: S3BucketExchange): Promise<MultipartUpload> {
  const id = query.get('uploadId') ?? '';
  const upload = await uploads.find(id, key);
  if (upload === undefined)
    throw new S3Error(
      'NoSuchUpload',
      'The specified upload does not exist. The upload ID may be invalid, or the upload may have been ' +
        'aborted or completed.',
      { UploadId: id.slice(0, 80) },
    );
  return upload;
}

function partNumber({ url: { query } }: S3BucketExchange): number {
  const value = query.get('partNumber') ?? '';
  const number = /^\d{1,5}$/.test(value) ? Number(value) : 0;
  if (number < 1 || number > MAX_UPLOAD_PARTS)
    throw new S3Error('InvalidArgument', `partNumber must be a number from 1 to ${MAX_UPLOAD_PARTS}`, {
      ArgumentName: 'partNumber',
      ArgumentValue: value,
    });
  return number;
}
