import { MAX_OBJECT_KEY_BYTES } from '../../resources/volumes/object-key.ts';
import type { OpenObject } from '../../resources/volumes/volume-objects.ts';
import { decodeS3Text } from './s3-url.ts';
import { checkReadConditions, writeCondition } from './conditional-requests.ts';
import type { S3BucketExchange } from './s3-exchange.ts';
import {
  s3Document,
  storedHeaders,
  noSuchKey,
  quoteEtag,
  sendEmpty,
  sendXmlWhenDone,
  s3Timestamp,
} from './s3-exchange.ts';
import { S3Error } from './s3.errors.ts';
import { readPayload, readSmallPayload } from './s3-payload.ts';
import { child, parseXml, childText } from '../../support/xml-parser.ts';
import { element } from '../../support/xml-writer.ts';

const MAX_DELETED = 1_000;
const MAX_DOCUMENT_BYTES = 4 * 1024 ** 2;

export async function putObject({ request, response, url, auth, objects }: S3BucketExchange): Promise<void> {
  checkKeyLength(url.key);
  const payload = readPayload(request, auth);
  const { etag } = await objects.put(
    url.key,
    { ...payload, headers: storedHeaders(request) },
    writeCondition(request.headers),
  );
  sendEmpty(response, 200, { etag: quoteEtag(etag), ...payload.checksums() });
}

export function checkKeyLength(key: string): void {
  if (Buffer.byteLength(key) > MAX_OBJECT_KEY_BYTES)
    throw new S3Error('KeyTooLongError', 'Your key is too long', {
      Size: String(Buffer.byteLength(key)),
      MaxSizeAllowed: String(MAX_OBJECT_KEY_BYTES),
    });
}

/** Opens the object to copy. The caller closes it. */
export async function openCopySource(exchange: S3BucketExchange): Promise<OpenObject> {
  const { request, volume, contents } = exchange;
  // A question mark in a key is percent-encoded, so the version is removed before decoding.
  const copySource = decodeS3Text(
    String(request.headers['x-amz-copy-source']).replace(/\?versionId=.*$/, ''),
  );
  const [, bucket = '', key = ''] = /^\/?([^/]+)\/(.+)$/s.exec(copySource) ?? [];
  if (key === '')
    throw new S3Error('InvalidArgument', 'x-amz-copy-source must be BUCKET/KEY', {
      ArgumentName: 'x-amz-copy-source',
    });
  const from = bucket === volume.id ? exchange.objects : contents.objects(await exchange.otherVolume(bucket));
  const source = await from.open(key);
  if (source === undefined) throw noSuchKey(key);
  try {
    checkReadConditions(request.headers, source, 'x-amz-copy-source-');
    return source;
  } catch (error) {
    await source.close();
    throw error;
  }
}

export async function copyObject(exchange: S3BucketExchange): Promise<void> {
  const { request, response, url, objects } = exchange;
  checkKeyLength(url.key);
  const directive = String(request.headers['x-amz-metadata-directive'] ?? 'COPY').toUpperCase();
  const replacing = directive === 'REPLACE' ? storedHeaders(request) : undefined;
  const source = await openCopySource(exchange);
  const copy = async (): Promise<string> => {
    const headers = replacing ?? source.headers;
    const bytes = source.size === 0 ? [] : source.read(0, source.size - 1);
    try {
      const { etag, modifiedAt } = await objects.put(
        url.key,
        { bytes: asAsyncIterable(bytes), length: source.size, headers, checksums: () => source.checksums },
        writeCondition(request.headers),
      );
      return s3Document('CopyObjectResult', [
        element('LastModified', s3Timestamp(modifiedAt)),
        element('ETag', quoteEtag(etag)),
      ]);
    } finally {
      if (Array.isArray(bytes)) await source.close();
      else bytes.destroy();
    }
  };
  await sendXmlWhenDone(response, copy(), exchange.errorDocument);
}

export async function* asAsyncIterable(
  source: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  yield* source;
}

/** Deleting an object that does not exist succeeds, as in S3. */
export async function deleteObject({ response, url, objects }: S3BucketExchange): Promise<void> {
  await objects.remove(url.key);
  sendEmpty(response, 204);
}

export async function deleteObjects(exchange: S3BucketExchange): Promise<void> {
  const { request, response, auth, objects } = exchange;
  const root = parseXml((await readSmallPayload(request, auth, MAX_DOCUMENT_BYTES)).toString('utf8'));
  const named = root?.children.filter(({ name }) => name === 'Object') ?? [];
  if (
    root?.name !== 'Delete' ||
    named.length === 0 ||
    named.length > MAX_DELETED ||
    named.some((one) => child(one, 'Key') === undefined)
  ) {
    throw new S3Error(
      'MalformedXML',
      `the body must be <Delete> with 1 to ${MAX_DELETED} times <Object><Key>`,
    );
  }
  const quiet = childText(root, 'Quiet')?.trim() === 'true';
  const remove = async (): Promise<string> => {
    const results = [];
    for (const key of named.map((one) => childText(one, 'Key') ?? '')) {
      try {
        await objects.remove(key);
        if (!quiet) results.push(element('Deleted', [element('Key', key)]));
      } catch (error) {
        const { code, message } = exchange.toS3Error(error);
        results.push(
          element('Error', [element('Key', key), element('Code', code), element('Message', message)]),
        );
      }
    }
    return s3Document('DeleteResult', results);
  };
  await sendXmlWhenDone(response, remove(), exchange.errorDocument);
}

/** Objects have no tags: the list is empty. */
export async function objectTagging({ response, url, objects }: S3BucketExchange): Promise<void> {
  if ((await objects.head(url.key)) === undefined) throw noSuchKey(url.key);
  const document = s3Document('Tagging', [element('TagSet', undefined)]);
  response
    .writeHead(200, { 'content-type': 'application/xml', 'content-length': Buffer.byteLength(document) })
    .end(document);
}
