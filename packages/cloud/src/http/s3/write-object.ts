import { LONGEST_KEY } from '../../resources/volumes/object-key.ts';
import type { OpenObject } from '../../resources/volumes/objects.ts';
import { decoded } from './address.ts';
import { readingVerdict, writingCondition } from './conditions.ts';
import type { BucketExchange } from './exchange.ts';
import { keptHeaders, noSuchKey, quoted, sendEmpty, sendWhenDone, timeText } from './exchange.ts';
import { S3Failure } from './failures.ts';
import { payloadOf, readWhole } from './payload.ts';
import { child, element, parseXml, textOf, xmlDocument } from './xml.ts';

const MOST_DELETED = 1_000;
const LARGEST_DOCUMENT = 4 * 1024 ** 2;

export async function putObject({
  request,
  response,
  address,
  admitted,
  objects,
}: BucketExchange): Promise<void> {
  checkKey(address.key);
  const payload = payloadOf(request, admitted);
  const { etag } = await objects.put(
    address.key,
    { ...payload, headers: keptHeaders(request) },
    writingCondition(request.headers),
  );
  sendEmpty(response, 200, { etag: quoted(etag), ...payload.checksums() });
}

export function checkKey(key: string): void {
  if (Buffer.byteLength(key) > LONGEST_KEY)
    throw new S3Failure('KeyTooLongError', 'Your key is too long', {
      Size: String(Buffer.byteLength(key)),
      MaxSizeAllowed: String(LONGEST_KEY),
    });
}

/** What is to be copied, held open. It must be closed. */
export async function openSource(exchange: BucketExchange): Promise<OpenObject> {
  const { request, volume, contents } = exchange;
  // A question mark in a key is written in percent, so the version is cut off before that is read.
  const said = decoded(String(request.headers['x-amz-copy-source']).replace(/\?versionId=.*$/, ''));
  const [, bucket = '', key = ''] = /^\/?([^/]+)\/(.+)$/s.exec(said) ?? [];
  if (key === '')
    throw new S3Failure('InvalidArgument', 'x-amz-copy-source must be BUCKET/KEY', {
      ArgumentName: 'x-amz-copy-source',
    });
  const from = bucket === volume.id ? exchange.objects : contents.objects(await exchange.otherVolume(bucket));
  const source = await from.open(key);
  if (source === undefined) throw noSuchKey(key);
  try {
    readingVerdict(request.headers, source, 'x-amz-copy-source-');
    return source;
  } catch (error) {
    await source.close();
    throw error;
  }
}

export async function copyObject(exchange: BucketExchange): Promise<void> {
  const { request, response, address, objects } = exchange;
  checkKey(address.key);
  const directive = String(request.headers['x-amz-metadata-directive'] ?? 'COPY').toUpperCase();
  const replacing = directive === 'REPLACE' ? keptHeaders(request) : undefined;
  const source = await openSource(exchange);
  const copy = async (): Promise<string> => {
    const headers = replacing ?? source.headers;
    const bytes = source.size === 0 ? [] : source.read(0, source.size - 1);
    try {
      const { etag, modifiedAt } = await objects.put(
        address.key,
        { bytes: pieces(bytes), length: source.size, headers, checksums: () => source.checksums },
        writingCondition(request.headers),
      );
      return xmlDocument('CopyObjectResult', [
        element('LastModified', timeText(modifiedAt)),
        element('ETag', quoted(etag)),
      ]);
    } finally {
      if (Array.isArray(bytes)) await source.close();
      else bytes.destroy();
    }
  };
  await sendWhenDone(response, copy(), exchange.failureDocument);
}

export async function* pieces(
  source: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  yield* source;
}

/** What is not there is gone, and that is what was asked for. */
export async function deleteObject({ response, address, objects }: BucketExchange): Promise<void> {
  await objects.remove(address.key);
  sendEmpty(response, 204);
}

export async function deleteObjects(exchange: BucketExchange): Promise<void> {
  const { request, response, admitted, objects } = exchange;
  const root = parseXml((await readWhole(request, admitted, LARGEST_DOCUMENT)).toString('utf8'));
  const named = root?.children.filter(({ name }) => name === 'Object') ?? [];
  if (
    root?.name !== 'Delete' ||
    named.length === 0 ||
    named.length > MOST_DELETED ||
    named.some((one) => child(one, 'Key') === undefined)
  ) {
    throw new S3Failure(
      'MalformedXML',
      `the body must be <Delete> with 1 to ${MOST_DELETED} times <Object><Key>`,
    );
  }
  const quiet = textOf(root, 'Quiet')?.trim() === 'true';
  const remove = async (): Promise<string> => {
    const told = [];
    for (const key of named.map((one) => textOf(one, 'Key') ?? '')) {
      try {
        await objects.remove(key);
        if (!quiet) told.push(element('Deleted', [element('Key', key)]));
      } catch (error) {
        const { code, message } = exchange.asFailure(error);
        told.push(
          element('Error', [element('Key', key), element('Code', code), element('Message', message)]),
        );
      }
    }
    return xmlDocument('DeleteResult', told);
  };
  await sendWhenDone(response, remove(), exchange.failureDocument);
}

/** Nothing has tags here, and that may be asked. */
export async function objectTagging({ response, address, objects }: BucketExchange): Promise<void> {
  if ((await objects.head(address.key)) === undefined) throw noSuchKey(address.key);
  const document = xmlDocument('Tagging', [element('TagSet', undefined)]);
  response
    .writeHead(200, { 'content-type': 'application/xml', 'content-length': Buffer.byteLength(document) })
    .end(document);
}
