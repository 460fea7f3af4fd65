import type { IncomingMessage } from 'node:http';
import { MOST_PARTS } from '../../resources/volumes/uploads.ts';
import type { Part, Upload } from '../../resources/volumes/uploads.ts';
import { rangeOf, writingCondition } from './conditions.ts';
import type { BucketExchange } from './exchange.ts';
import { keptHeaders, quoted, sendEmpty, sendWhenDone, sendXml, timeText } from './exchange.ts';
import { S3Failure } from './failures.ts';
import { encodingElement, limitOf, writerOf } from './list-objects.ts';
import { payloadOf, readWhole } from './payload.ts';
import { SOURCE_HEADER } from './source-header.ts';
import { checkKey, openSource, pieces } from './write-object.ts';
import { element, parseXml, textOf, xmlDocument } from './xml.ts';

const LARGEST_DOCUMENT = 8 * 1024 ** 2;
const MOST_LISTED = 1_000;
const LONGEST_SOURCE = 128;

export async function createUpload({
  request,
  response,
  address,
  volume,
  uploads,
}: BucketExchange): Promise<void> {
  checkKey(address.key);
  const { id } = await uploads.begin(address.key, keptHeaders(request), sourceOf(request));
  sendXml(
    response,
    xmlDocument('InitiateMultipartUploadResult', [
      element('Bucket', volume.id),
      element('Key', address.key),
      element('UploadId', id),
    ]),
  );
}

function sourceOf({ headers }: IncomingMessage): string | undefined {
  const source = headers[SOURCE_HEADER];
  if (typeof source === 'string' && source.length > LONGEST_SOURCE)
    throw new S3Failure('InvalidArgument', `${SOURCE_HEADER} may have at most ${LONGEST_SOURCE} characters`, {
      ArgumentName: SOURCE_HEADER,
    });
  return typeof source === 'string' ? source : undefined;
}

export async function uploadPart(exchange: BucketExchange): Promise<void> {
  const { request, response, admitted, uploads } = exchange;
  const number = partNumber(exchange);
  const payload = payloadOf(request, admitted);
  const part = await uploads.put(await uploadOf(exchange), number, payload);
  sendEmpty(response, 200, { etag: quoted(part.etag), ...payload.checksums() });
}

export async function uploadPartCopy(exchange: BucketExchange): Promise<void> {
  const { request, response, uploads } = exchange;
  const [number, upload] = [partNumber(exchange), await uploadOf(exchange)];
  const source = await openSource(exchange);
  const copy = async (): Promise<string> => {
    let stream;
    try {
      const wanted = request.headers['x-amz-copy-source-range'];
      const { from, to } = (typeof wanted === 'string' ? rangeOf(wanted, source.size) : undefined) ?? {
        from: 0,
        to: source.size - 1,
      };
      if (to >= from) stream = source.read(from, to);
      const part = await uploads.put(upload, number, { bytes: pieces(stream ?? []), length: to - from + 1 });
      return xmlDocument('CopyPartResult', [
        element('LastModified', timeText(part.modifiedAt)),
        element('ETag', quoted(part.etag)),
      ]);
    } finally {
      if (stream === undefined) await source.close();
      else stream.destroy();
    }
  };
  await sendWhenDone(response, copy(), exchange.failureDocument);
}

export async function completeUpload(exchange: BucketExchange): Promise<void> {
  const { request, response, address, admitted, volume, uploads } = exchange;
  const upload = await uploadOf(exchange);
  const chosen = readChosen((await readWhole(request, admitted, LARGEST_DOCUMENT)).toString('utf8'));
  checkChosen(chosen, await uploads.parts(upload.id));
  const complete = async (): Promise<string> => {
    const { etag } = await uploads.complete(upload, chosen, writingCondition(request.headers));
    return xmlDocument('CompleteMultipartUploadResult', [
      element(
        'Location',
        `${request.headers.host === undefined ? '' : `http://${request.headers.host}`}${address.path}`,
      ),
      element('Bucket', volume.id),
      element('Key', address.key),
      element('ETag', quoted(etag)),
    ]);
  };
  await sendWhenDone(response, complete(), exchange.failureDocument);
}

function readChosen(document: string): Pick<Part, 'number' | 'etag'>[] {
  const root = parseXml(document);
  const parts =
    root?.children
      .filter(({ name }) => name === 'Part')
      .map((part) => ({
        number: Number(textOf(part, 'PartNumber') ?? Number.NaN),
        etag: (textOf(part, 'ETag') ?? '').trim().replaceAll('"', '').toLowerCase(),
      })) ?? [];
  if (
    root?.name !== 'CompleteMultipartUpload' ||
    parts.length === 0 ||
    parts.some(({ number }) => !Number.isInteger(number))
  ) {
    throw new S3Failure(
      'MalformedXML',
      'the body must be <CompleteMultipartUpload> with a <Part> of <PartNumber> and <ETag> for each part',
    );
  }
  return parts;
}

function checkChosen(chosen: readonly Pick<Part, 'number' | 'etag'>[], parts: readonly Part[]): void {
  const there = new Set(parts.map(({ number, etag }) => `${number} ${etag}`));
  chosen.forEach(({ number, etag }, index) => {
    if (index > 0 && number <= (chosen[index - 1]?.number ?? 0))
      throw new S3Failure('InvalidPartOrder', 'The list of parts was not in ascending order.');
    if (!there.has(`${number} ${etag}`))
      throw new S3Failure('InvalidPart', `part ${number} was not uploaded, or its ETag is another`, {
        PartNumber: String(number),
      });
  });
}

export async function abortUpload(exchange: BucketExchange): Promise<void> {
  await exchange.uploads.abort(await uploadOf(exchange));
  sendEmpty(exchange.response, 204);
}

export async function listParts(exchange: BucketExchange): Promise<void> {
  const {
    response,
    address: { query, key },
    volume,
    uploads,
  } = exchange;
  const upload = await uploadOf(exchange);
  const [limit, marker] = [
    limitOf(query, 'max-parts', MOST_LISTED),
    limitOf(query, 'part-number-marker', MOST_PARTS) % MOST_PARTS,
  ];
  const rest = (await uploads.parts(upload.id)).filter(({ number }) => number > marker);
  const told = rest.slice(0, limit);
  const truncated = rest.length > told.length;
  sendXml(
    response,
    xmlDocument('ListPartsResult', [
      element('Bucket', volume.id),
      element('Key', key),
      element('UploadId', upload.id),
      element('PartNumberMarker', marker),
      truncated ? element('NextPartNumberMarker', told.at(-1)?.number ?? marker) : undefined,
      element('MaxParts', limit),
      element('IsTruncated', truncated),
      ...told.map((part) =>
        element('Part', [
          element('PartNumber', part.number),
          element('LastModified', timeText(part.modifiedAt)),
          element('ETag', quoted(part.etag)),
          element('Size', part.size),
        ]),
      ),
      element('StorageClass', 'STANDARD'),
    ]),
  );
}

export async function listUploads({
  response,
  address: { query },
  volume,
  uploads,
}: BucketExchange): Promise<void> {
  const [limit, prefix, write] = [
    limitOf(query, 'max-uploads', MOST_LISTED),
    query.get('prefix') ?? '',
    writerOf(query),
  ];
  const [keyMarker, idMarker] = [query.get('key-marker') ?? '', query.get('upload-id-marker') ?? ''];
  const all = (await uploads.list()).filter(({ key }) => key.startsWith(prefix));
  const from = keyMarker === '' ? 0 : firstAfter(all, keyMarker, idMarker);
  const told = all.slice(from, from + limit);
  const truncated = from + told.length < all.length;
  const last = told.at(-1);
  sendXml(
    response,
    xmlDocument('ListMultipartUploadsResult', [
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
      ...told.map(({ key, id, startedAt, source }) =>
        element('Upload', [
          element('Key', write(key)),
          element('UploadId', id),
          element('StorageClass', 'STANDARD'),
          element('Initiated', timeText(startedAt)),
          source === undefined ? undefined : element('Source', source),
        ]),
      ),
    ]),
  );
}

function firstAfter(all: readonly Upload[], key: string, id: string): number {
  const at = all.findIndex((upload) => upload.key === key && upload.id === id);
  if (at !== -1) return at + 1;
  const next = all.findIndex((upload) => upload.key > key);
  return next === -1 ? all.length : next;
}

async function uploadOf({ address: { query, key }, uploads }: BucketExchange): Promise<Upload> {
  const id = query.get('uploadId') ?? '';
  const upload = await uploads.find(id, key);
  if (upload === undefined)
    throw new S3Failure(
      'NoSuchUpload',
      'The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed.',
      { UploadId: id.slice(0, 80) },
    );
  return upload;
}

function partNumber({ address: { query } }: BucketExchange): number {
  const said = query.get('partNumber') ?? '';
  const number = /^\d{1,5}$/.test(said) ? Number(said) : 0;
  if (number < 1 || number > MOST_PARTS)
    throw new S3Failure('InvalidArgument', `partNumber must be a number from 1 to ${MOST_PARTS}`, {
      ArgumentName: 'partNumber',
      ArgumentValue: said,
    });
  return number;
}
